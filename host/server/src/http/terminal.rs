//! `GET /api/instance/{uuid}/terminal/`: the checks before the upgrade to a WebSocket.

use super::activity::Activity;
use super::extract::{Call, InPath};
use super::interface::Shared;
use super::respond::{HttpError, Response};
use super::terminal_socket::serve;
use crate::api::terminal;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::IntoResponse;
use http::Uri;
use std::sync::Arc;
use wharf_domain::error::Error;
use wharf_domain::scope::Scope;
use wharf_instances::Selector;

/// The version of the messages.
const PROTOCOL: &str = "wharf.terminal.v1";

/// The largest message of a client in bytes.
const MAX_MESSAGE: usize = 1024 * 1024;

/// The size of the buffers of a WebSocket in bytes. They also bound the output that a client that does
/// not read has received in vain.
const BUFFER: usize = 32 * 1024;

/// The most bytes that wait for a client: a message of output, and the responses to pings. A client
/// that sends pings and reads nothing cannot make them grow.
const MAX_UNSENT: usize = 2 * BUFFER;

/// Opens a terminal. Without an upgrade, the response is that of the checks: browsers do not show it
/// after a failed upgrade.
pub(super) async fn open(
    State(interface): Shared,
    Extension(connection): Extension<Arc<Activity>>,
    InPath(selector): InPath<Selector>,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    call: Call,
) -> Response {
    // The request is safe by its method only.
    if !call.caller.scopes.has(Scope::Write) {
        return HttpError::Scope(Scope::Write).into_response();
    }
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let (app, caller) = (interface.api.app(), &call.caller);
    let request = match terminal::parse(query) {
        Ok(request) => request,
        Err(errors) => return call.fail(&Error::from(errors)),
    };
    let Ok(upgrade) = upgrade else {
        return match app.check_terminal(caller, &selector, &request) {
            Ok(()) => HttpError::NoUpgrade.into_response(),
            Err(error) => call.fail(&error),
        };
    };
    let attachment = match app.open_terminal(caller, &selector, request).await {
        Ok(attachment) => attachment,
        Err(error) => return call.fail(&error),
    };
    let place = connection.upgrade();
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNSENT)
        .on_upgrade(async move |socket| {
            serve(socket, attachment, &connection).await;
            drop(place);
        })
        .into_response()
}
