//! `GET /api/instance/{uuid}/tunnel/`: the checks before the upgrade to a WebSocket.

use super::activity::Activity;
use super::extract::{Call, InPath};
use super::interface::Shared;
use super::respond::{HttpError, Response};
use super::tunnel_socket::{FRAME, serve};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::IntoResponse;
use http::Uri;
use std::sync::Arc;
use wharf_domain::blueprint::SSH_PORT;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scope;
use wharf_instances::Selector;

/// The version of the messages. A client need not ask for it.
const PROTOCOL: &str = "wharf.tunnel.v1";

/// Opens a tunnel. Without an upgrade, the response is that of the checks, and nothing is connected.
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
    let (app, caller) = (interface.api.app(), &call.caller);
    let port = match port(uri.query().unwrap_or_default()) {
        Ok(port) => port,
        Err(errors) => return call.fail(&Error::from(errors)),
    };
    let Ok(upgrade) = upgrade else {
        return match app.check_tunnel(caller, &selector) {
            Ok(()) => HttpError::NoUpgrade.into_response(),
            Err(error) => call.fail(&error),
        };
    };
    let tunnel = match app.open_tunnel(caller, &selector, port).await {
        Ok(tunnel) => tunnel,
        Err(error) => return call.fail(&error),
    };
    let place = connection.upgrade();
    upgrade
        .protocols([PROTOCOL])
        .max_message_size(FRAME)
        .max_frame_size(FRAME)
        .read_buffer_size(FRAME)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * FRAME)
        .on_upgrade(async move |socket| {
            serve(socket, tunnel, &connection).await;
            drop(place);
        })
        .into_response()
}

/// The port that a query names.
fn port(query: &str) -> Result<u16, FieldErrors> {
    let mut ports = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "port");
    let Some((_, port)) = ports.next() else {
        return Ok(SSH_PORT);
    };
    if ports.next().is_some() {
        return Err(FieldErrors::one("port", "must be given once"));
    }
    let port = port.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| FieldErrors::one("port", "must be an integer from 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn a_query_names_one_port() {
        assert_eq!(port("").unwrap(), 22);
        assert_eq!(port("ticket=a&port=8888").unwrap(), 8888);
        for wrong in [
            "port=",
            "port=0",
            "port=65536",
            "port=-1",
            "port=ssh",
            "port=1&port=1",
        ] {
            assert!(port(wrong).unwrap_err().has("port"), "{wrong}");
        }
    }
}
