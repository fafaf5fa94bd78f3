//! The routes of snapshots.

use super::endpoint::{Endpoint, reader};
use super::entity_tags::Conditions;
use super::extract::{Call, IdempotencyHeader, InPath, Json};
use super::interface::Shared;
use super::kept::{delete, get_one};
use super::list::answer_rows;
use super::respond::Response;
use super::routes::Routes;
use crate::api::snapshots;
use axum::extract::State;
use axum::routing::{get, post};
use http::Uri;
use wharf_domain::snapshot::OfSnapshot;
use wharf_instances::Selector;

pub(super) fn routes() -> Routes<7> {
    [
        ("/api/instance/{uuid}/snapshot/", post(take)),
        (
            "/api/instance/{uuid}/snapshot-estimate/",
            get(Endpoint(snapshots::estimate)),
        ),
        (
            "/api/instance/{uuid}/snapshot-plan/",
            get(reader(snapshots::plan))
                .put(Endpoint(snapshots::set_plan))
                .delete(Endpoint(snapshots::end_plan)),
        ),
        ("/api/snapshot/", get(list_all)),
        (
            "/api/snapshot/{id}/",
            get(get_one::<OfSnapshot>).delete(delete::<OfSnapshot>),
        ),
        (
            "/api/snapshot/{id}/restore/",
            post(Endpoint(snapshots::restore)),
        ),
        ("/api/snapshot/{id}/clone/", post(clone)),
    ]
}

async fn take(
    State(interface): Shared,
    InPath(named): InPath<String>,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let (api, body) = (&interface.api, &call.body.0);
    call.respond(snapshots::take(api, &call.caller, &named, body, key.as_deref()).await)
}

async fn list_all(
    State(interface): Shared,
    uri: Uri,
    conditions: Conditions,
    call: Call,
) -> Response {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut given = form_urlencoded::parse(query).filter(|(name, _)| name == "instance");
    let of = given.next().map(|(_, value)| value.into_owned());
    let path = match &of {
        Some(of) => {
            let of: String = form_urlencoded::byte_serialize(of.as_bytes()).collect();
            format!("/api/snapshot/?instance={of}&")
        }
        None => "/api/snapshot/?".to_owned(),
    };
    let of = of.map(|of| Selector::parse(&of));
    answer_rows(
        interface,
        &uri,
        &conditions,
        call,
        path,
        move |api, caller, page| snapshots::list(api, caller, of.as_ref(), page),
    )
    .await
}

async fn clone(
    State(interface): Shared,
    InPath(named): InPath<String>,
    IdempotencyHeader(key): IdempotencyHeader,
    call: Call<Json>,
) -> Response {
    let (api, body) = (&interface.api, &call.body.0);
    call.respond(snapshots::clone(api, &call.caller, &named, body, key.as_deref()).await)
}
