//! The end of a WebSocket, as its client learns of it.

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// Code of RFC 6455 for private use.
pub(super) const NOT_RUNNING: u16 = 4001;

/// Time to tell a client of the end, and for its answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest reason of a close frame in bytes, by RFC 6455.
const MAX_REASON: usize = 123;

pub(super) type SocketSender = SplitSink<WebSocket, Message>;
pub(super) type SocketReceiver = SplitStream<WebSocket>;

/// Sends the last message, if there is one, and the code with its reason. Waits a moment for the client.
pub(super) async fn close(
    mut sender: SocketSender,
    mut receiver: SocketReceiver,
    last: Option<Message>,
    code: u16,
    reason: &str,
) {
    let end = reason.floor_char_boundary(MAX_REASON);
    let reason = reason.get(..end).unwrap_or_default().into();
    let close = async {
        if let Some(last) = last {
            sender.send(last).await?;
        }
        let frame = CloseFrame { code, reason };
        sender.send(Message::Close(Some(frame))).await?;
        while let Some(Ok(_)) = receiver.next().await {}
        Ok::<_, axum::Error>(())
    };
    drop(timeout(CLOSE_TIMEOUT, close).await);
}

/// Whether a client has sent a message beyond the limit.
pub(super) fn is_too_large(error: &axum::Error) -> bool {
    error.to_string().contains("Message too long")
}
