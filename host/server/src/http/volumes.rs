//! The routes of volumes.

use super::entity_tags::Conditions;
use super::extract::{Call, IdempotencyHeader, InPath, Json, Named};
use super::interface::Shared;
use super::kept::{condition, delete, get_one};
use super::list::answer_rows;
use super::respond::Response;
use super::routes::Routes;
use crate::api::{attach, volume_shares, volumes};
use axum::extract::State;
use axum::routing::{delete as delete_method, get, post};
use http::Uri;
use wharf_domain::volume::OfVolume;

pub(super) fn routes() -> Routes<6> {
    [
        ("/api/volume/", get(list_all).post(create)),
        (
            "/api/volume/{id}/",
            get(get_one::<OfVolume>)
                .patch(update)
                .delete(delete::<OfVolume>),
        ),
        ("/api/volume/{id}/share/", get(list_shares).post(share)),
        ("/api/volume/{id}/share/{share}/", delete_method(unshare)),
        ("/api/instance/{uuid}/attach-volume/", post(attach_volume)),
        ("/api/instance/{uuid}/detach-volume/", post(detach_volume)),
    ]
}

async fn list_all(
    State(interface): Shared,
    uri: Uri,
    conditions: Conditions,
    call: Call,
) -> Response {
    let path = "/api/volume/?".to_owned();
    answer_rows(interface, &uri, &conditions, call, path, volumes::list).await
}

async fn create(
    State(interface): Shared,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(volumes::create(api, &call.caller, &call.body.0, key.as_deref()).await)
}

async fn update(
    State(interface): Shared,
    InPath(named): InPath<String>,
    conditions: Conditions,
    call: Call<Json>,
) -> Response {
    let (api, condition) = (&interface.api, condition::<OfVolume>(conditions));
    call.respond(volumes::update(api, &call.caller, &named, &condition, &call.body.0).await)
}

async fn list_shares(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call,
) -> Response {
    call.respond(volume_shares::list(&interface.api, &call.caller, &named))
}

async fn share(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(volume_shares::create(api, &call.caller, &named, &call.body.0).await)
}

async fn unshare(
    State(interface): Shared,
    InPath((named, id)): InPath<(String, String)>,
    call: Call,
) -> Response {
    call.respond(volume_shares::delete(&interface.api, &call.caller, &named, &id).await)
}

async fn attach_volume(
    State(interface): Shared,
    Named(selector): Named,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    let body = &call.body.0;
    call.respond(attach::attach(api, &call.caller, &selector, &call.condition, body).await)
}

async fn detach_volume(
    State(interface): Shared,
    Named(selector): Named,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    let body = &call.body.0;
    call.respond(attach::detach(api, &call.caller, &selector, &call.condition, body).await)
}
