//! The routes of shares.

use super::extract::{Call, InPath, Json, Named};
use super::interface::Shared;
use super::respond::Response;
use super::routes::Routes;
use crate::api::shares;
use axum::extract::State;
use axum::routing::{get, patch};
use wharf_instances::Selector;

pub(super) fn routes() -> Routes<2> {
    [
        ("/api/instance/{uuid}/share/", get(list).post(create)),
        (
            "/api/instance/{uuid}/share/{id}/",
            patch(update).delete(delete),
        ),
    ]
}

async fn list(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(shares::list(&interface.api, &call.caller, &selector))
}

async fn create(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(shares::create(api, &call.caller, &selector, &call.body.0).await)
}

async fn update(
    State(interface): Shared,
    InPath((instance, id)): InPath<(String, String)>,
    call: Call<Json>,
) -> Response {
    let (api, selector) = (&interface.api, Selector::parse(&instance));
    call.respond(shares::update(api, &call.caller, &selector, &id, &call.body.0).await)
}

async fn delete(
    State(interface): Shared,
    InPath((instance, id)): InPath<(String, String)>,
    call: Call,
) -> Response {
    let selector = Selector::parse(&instance);
    call.respond(shares::delete(&interface.api, &call.caller, &selector, &id).await)
}
