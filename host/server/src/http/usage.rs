//! The handler of `GET /api/usage/`. It reads many ledgers, so the workers run it.

use super::extract::Call;
use super::interface::Shared;
use super::list::on_worker;
use super::respond::Response;
use crate::api::usage::{self, Span};
use axum::extract::State;
use http::Uri;

pub(super) async fn handler(State(interface): Shared, uri: Uri, call: Call) -> Response {
    let query = uri.query().unwrap_or_default();
    let usage = match Span::parse(form_urlencoded::parse(query.as_bytes())) {
        Ok(span) => {
            let caller = call.caller.clone();
            on_worker(interface, caller.user, move |interface| {
                usage::run(&interface.api, &caller, span)
            })
            .await
        }
        Err(errors) => Err(errors.into()),
    };
    call.respond(usage)
}
