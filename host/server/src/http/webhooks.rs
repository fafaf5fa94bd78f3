//! The routes of webhooks.

use super::endpoint::{Endpoint, reader};
use super::extract::{Call, InPath};
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
        (
            "/api/webhook/",
            get(reader(webhooks::list)).post(Endpoint(webhooks::create)),
        ),
        (
            "/api/webhook/{id}/",
            get(reader(webhooks::get)).delete(Endpoint(webhooks::delete)),
        ),
        ("/api/webhook/{id}/test/", post(Endpoint(webhooks::test))),
        (
            "/api/webhook/{id}/rotate/",
            post(Endpoint(webhooks::rotate)),
        ),
        ("/api/webhook/{id}/delivery/", get(deliveries)),
        (
            "/api/webhook/{id}/delivery/{number}/redeliver/",
            post(Endpoint(webhooks::redeliver)),
        ),
    ]
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
