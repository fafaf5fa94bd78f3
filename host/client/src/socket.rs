//! WebSockets of the interface.

use crate::Error;
use crate::request::{Request, UPGRADED};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

pub(crate) type Socket = WebSocketStream<reqwest::Upgraded>;

impl Request<'_, ()> {
    /// Opens a WebSocket with this subprotocol.
    pub(crate) async fn socket(self, protocol: &str) -> Result<Socket, Error> {
        let key = generate_key();
        let server = self.server().clone();
        let request = self
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .header(SEC_WEBSOCKET_PROTOCOL, protocol);
        let response = request.response().await?;
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if response.status().as_u16() != UPGRADED
            || accepted
                .is_none_or(|accepted| accepted != derive_accept_key(key.as_bytes()).as_str())
        {
            return Err(Error::Setup("the server opened no WebSocket".into()));
        }
        let upgraded = response.upgrade().await;
        let stream = upgraded.map_err(|error| server.unreachable(error))?;
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)
    }
}
