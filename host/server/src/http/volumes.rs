//! The routes of volumes.

use super::endpoint::{Endpoint, reader};
use super::entity_tags::Conditions;
use super::extract::{Call, IdempotencyHeader, InPath, Json};
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
        (
            "/api/volume/{id}/share/",
            get(reader(volume_shares::list)).post(Endpoint(volume_shares::create)),
        ),
        (
            "/api/volume/{id}/share/{share}/",
            delete_method(Endpoint(volume_shares::delete)),
        ),
        (
            "/api/instance/{uuid}/attach-volume/",
            post(Endpoint(attach::attach)),
        ),
        (
            "/api/instance/{uuid}/detach-volume/",
            post(Endpoint(attach::detach)),
        ),
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
