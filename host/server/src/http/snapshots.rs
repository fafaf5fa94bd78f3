//! The routes of snapshots.

use super::entity_tags::Conditions;
use super::extract::{Call, IdempotencyHeader, InPath, Json, Named};
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
        ("/api/instance/{uuid}/snapshot-estimate/", get(estimate)),
        (
            "/api/instance/{uuid}/snapshot-plan/",
            get(plan).put(set_plan).delete(end_plan),
        ),
        ("/api/snapshot/", get(list_all)),
        (
            "/api/snapshot/{id}/",
            get(get_one::<OfSnapshot>).delete(delete::<OfSnapshot>),
        ),
        ("/api/snapshot/{id}/restore/", post(restore)),
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

async fn estimate(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(snapshots::estimate(&interface.api, &call.caller, &selector).await)
}

async fn plan(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(snapshots::plan(&interface.api, &call.caller, &selector))
}

async fn set_plan(State(interface): Shared, Named(selector): Named, call: Call<Json>) -> Response {
    let api = &interface.api;
    call.respond(snapshots::set_plan(api, &call.caller, &selector, &call.body.0).await)
}

async fn end_plan(State(interface): Shared, Named(selector): Named, call: Call) -> Response {
    call.respond(snapshots::end_plan(&interface.api, &call.caller, &selector).await)
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

async fn restore(
    State(interface): Shared,
    InPath(named): InPath<String>,
    call: Call<Json>,
) -> Response {
    let api = &interface.api;
    call.respond(snapshots::restore(api, &call.caller, &named, &call.body.0).await)
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
