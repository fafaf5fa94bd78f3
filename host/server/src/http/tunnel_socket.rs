//! A client of a tunnel on its WebSocket. Binary messages are bytes, and an empty one is the end of the
//! bytes in its direction. Each side reads as fast as the other takes the bytes.

use super::activity::Activity;
use super::liveness::Liveness;
use super::socket_end::{NOT_RUNNING, SocketReceiver, SocketSender, close, is_too_large};
use axum::extract::ws::{Message, WebSocket, close_code};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use wharf_instances::Tunnel;
use wharf_terminal::{PortReader, PortWriter, TerminalEnd};

/// The largest message in bytes.
pub(super) const FRAME: usize = 64 * 1024;

/// Interval of pings.
const PING_EVERY: Duration = Duration::from_secs(20);

/// The time after which a silent client is given up. A client whose user has suspended it answers no
/// pings, and goes on when it is resumed.
const SILENCE: Duration = Duration::from_secs(600);

/// The last thing that happens to a tunnel.
enum TunnelClose {
    /// The client has closed or lost its connection.
    Gone,
    /// Both directions have ended.
    Done,
    /// The port has broken its connection.
    Broken,
    /// The client sent a message of another form, or a message that is too large.
    Wrong,
    TooLarge,
    End(TerminalEnd),
}

/// The directions that have ended.
#[derive(Default)]
struct Ended {
    up: AtomicBool,
    down: AtomicBool,
    changed: Notify,
}

impl Ended {
    fn end(&self, direction: &AtomicBool) {
        direction.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Completes when both have ended.
    async fn both(&self) {
        while !(self.up.load(Ordering::Acquire) && self.down.load(Ordering::Acquire)) {
            self.changed.notified().await;
        }
    }
}

/// Serves a client until it goes or the tunnel ends.
pub(super) async fn serve(socket: WebSocket, tunnel: Tunnel, connection: &Activity) {
    let Tunnel {
        mut permit,
        mut reader,
        mut writer,
    } = tunnel;
    let (mut sender, mut receiver) = socket.split();
    let (ended, life) = (Ended::default(), Liveness::default());
    let last = tokio::select! {
        last = receive(&mut receiver, &mut writer, &ended, &life) => last,
        last = send(&mut sender, &mut reader, &ended) => last,
        () = ended.both() => TunnelClose::Done,
        () = life.ends(SILENCE) => TunnelClose::Gone,
        end = permit.ended() => TunnelClose::End(end),
    };
    // The port learns of the end before the client does.
    drop((reader, writer, permit));
    if matches!(last, TunnelClose::TooLarge) {
        connection.linger();
    }
    if let Some((code, reason)) = close_of(&last) {
        close(sender, receiver, None, code, reason).await;
    }
}

/// Passes the messages of a client to the port. While the port reads nothing, none is read.
async fn receive(
    receiver: &mut SocketReceiver,
    writer: &mut PortWriter,
    ended: &Ended,
    life: &Liveness,
) -> TunnelClose {
    let mut takes = true;
    loop {
        let message = receiver.next().await;
        life.heard();
        match message {
            Some(Ok(Message::Binary(_))) if ended.up.load(Ordering::Acquire) && takes => {
                return TunnelClose::Wrong;
            }
            Some(Ok(Message::Binary(bytes))) if bytes.is_empty() => {
                // The reader learns of a broken connection.
                let _ = writer.finish().await;
                ended.end(&ended.up);
            }
            Some(Ok(Message::Binary(bytes))) if takes => {
                life.waits(true);
                // A server may answer and go before it has read all. Its last bytes still pass.
                if writer.write(bytes).await.is_err() {
                    takes = false;
                    ended.end(&ended.up);
                }
                life.waits(false);
            }
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Text(_))) => return TunnelClose::Wrong,
            Some(Ok(Message::Close(_))) | None => return TunnelClose::Gone,
            Some(Err(error)) => {
                tracing::debug!("tunnel: {error}");
                return if is_too_large(&error) {
                    TunnelClose::TooLarge
                } else {
                    TunnelClose::Gone
                };
            }
        }
    }
}

/// Sends the bytes of the port, their end, and pings.
async fn send(sender: &mut SocketSender, reader: &mut PortReader, ended: &Ended) -> TunnelClose {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    loop {
        let read = async {
            if ended.down.load(Ordering::Acquire) {
                reader.closed().await;
                return Err(None);
            }
            reader.read().await.map_err(Some)
        };
        let message = tokio::select! {
            read = read => match read {
                Ok(Some(bytes)) => Message::Binary(bytes),
                Ok(None) => {
                    let sent = sender.send(Message::Binary(Bytes::new())).await;
                    ended.end(&ended.down);
                    if sent.is_err() {
                        return TunnelClose::Gone;
                    }
                    continue;
                }
                Err(Some(error)) => {
                    tracing::debug!("tunnel: {error}");
                    return TunnelClose::Broken;
                }
                Err(None) => return TunnelClose::Done,
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
        };
        if sender.send(message).await.is_err() {
            return TunnelClose::Gone;
        }
    }
}

/// The code and the reason of the close frame.
fn close_of(last: &TunnelClose) -> Option<(u16, &'static str)> {
    Some(match last {
        TunnelClose::Gone => return None,
        TunnelClose::Done => (close_code::NORMAL, ""),
        TunnelClose::Broken => (
            close_code::ERROR,
            "The port of the instance has broken its connection.",
        ),
        TunnelClose::Wrong => (
            close_code::POLICY,
            "Messages must be binary, and none follows an empty one.",
        ),
        TunnelClose::TooLarge => (
            close_code::SIZE,
            "A message must not be larger than 64 KiB.",
        ),
        TunnelClose::End(TerminalEnd::Access) => (
            close_code::POLICY,
            "The key or session of this tunnel is not valid any more.",
        ),
        TunnelClose::End(TerminalEnd::NotRunning) => {
            (NOT_RUNNING, "The instance is not running any more.")
        }
        TunnelClose::End(_) => (
            close_code::AWAY,
            "The service stops; connect again shortly.",
        ),
    })
}
