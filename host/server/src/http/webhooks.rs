//! The routes of webhooks.

use super::extract::{Call, InPath, Json};
use super::interface::Shared;
use super::respond::Response;
use super::routes::Routes;
use crate::api::list::ListPage;
use crate::api::webhooks;
use axum::extract::State;
use axum::routing::{get, post};
use http::Uri;
use wharf_domain::error::Error;

pub(super) fn routes() -> Routes<6> {
    [
        ("/api/webhook/", get(list).post(create)),
        ("/api/webhook/{id}/", get(get_one).delete(delete)),
        ("/api/webhook/{id}/test/", post(test)),
        ("/api/webhook/{id}/rotate/", post(rotate)),
        ("/api/webhook/{id}/delivery/", get(deliveries)),
        (
            "/api/webhook/{id}/delivery/{number}/redeliver/",
            post(redeliver),
        ),
    ]
}

async fn list(State(interface): Shared, call: Call) -> Response {
    call.respond(webhooks::list(&interface.api, &call.caller))
}

async fn create(State(interface): Shared, call: Call<Json>) -> Response {
    call.respond(webhooks::create(&interface.api, &call.caller, &call.body.0).await)
}

async fn get_one(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(webhooks::get(&interface.api, &call.caller, &id))
}

async fn delete(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(webhooks::delete(&interface.api, &call.caller, &id).await)
}

async fn test(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(webhooks::test(&interface.api, &call.caller, &id).await)
}

async fn rotate(State(interface): Shared, InPath(id): InPath<String>, call: Call) -> Response {
    call.respond(webhooks::rotate(&interface.api, &call.caller, &id).await)
}

async fn deliveries(
    State(interface): Shared,
    InPath(id): InPath<String>,
    uri: Uri,
    call: Call,
) -> Response {
    let query = uri.query().unwrap_or_default().as_bytes();
    let page = ListPage::parse(form_urlencoded::parse(query)).map_err(Error::from);
    let found = page.and_then(|page| {
        let page = page.unwrap_or_else(ListPage::first);
        webhooks::deliveries(&interface.api, &call.caller, &id, page)
    });
    call.respond(found)
}

async fn redeliver(
    State(interface): Shared,
    InPath((id, number)): InPath<(String, String)>,
    call: Call,
) -> Response {
    call.respond(webhooks::redeliver(&interface.api, &call.caller, &id, &number).await)
}
