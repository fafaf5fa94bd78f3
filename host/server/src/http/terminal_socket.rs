//! A client of a terminal on its WebSocket: bytes in binary messages, and control in text messages.

use super::activity::Activity;
use super::liveness::Liveness;
use super::socket_end::{NOT_RUNNING, SocketReceiver, SocketSender, close, is_too_large};
use crate::api::terminal::{self, Control, Notice};
use axum::extract::ws::{Message, WebSocket, close_code};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use wharf_terminal::{AttachmentEvent, TerminalAttachment, TerminalEnd};

/// Interval of pings, and the time after which a silent client is given up. A client that reads nothing
/// does not answer pings.
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);

/// Code of RFC 6455 for private use.
const REPLACED: u16 = 4000;

/// Serves a client until it goes or the terminal ends.
pub(super) async fn serve(
    socket: WebSocket,
    attachment: TerminalAttachment,
    connection: &Activity,
) {
    let (mut sender, mut receiver) = socket.split();
    let first = Notice::Session {
        session: attachment.session(),
        replayed: attachment.replayed(),
    };
    if sender.send(text(&first)).await.is_err() {
        return;
    }
    let (paused, pauses) = watch::channel(false);
    let life = Liveness::default();
    let last = tokio::select! {
        last = receive(&mut receiver, &attachment, &paused, &life) => last,
        last = send(&mut sender, &attachment, pauses) => last,
        () = life.ends(SILENCE) => TerminalClose::Gone,
        event = attachment.cut() => TerminalClose::Event(event),
    };
    drop(attachment);
    let (notice, code) = match last {
        TerminalClose::Gone => return,
        TerminalClose::Closed => (None, close_code::NORMAL),
        TerminalClose::Wrong(error) => (Some(Notice::Error { error }), close_code::POLICY),
        TerminalClose::TooLarge => {
            connection.linger();
            let error = "A message must not be larger than 1 MiB.";
            (Some(Notice::Error { error }), close_code::SIZE)
        }
        TerminalClose::Event(event) => (terminal::notice(&event), code(&event)),
    };
    let reason = match &notice {
        Some(Notice::Error { error }) => *error,
        _ => "",
    };
    let last = notice.as_ref().map(text);
    close(sender, receiver, last, code, reason).await;
}

/// The last thing that happens to a client.
enum TerminalClose {
    /// The connection is broken.
    Gone,
    /// The client has closed the connection.
    Closed,
    /// The client sent a message of another form.
    Wrong(&'static str),
    /// The client sent a message that is too large.
    TooLarge,
    /// The terminal has ended, or has another client.
    Event(AttachmentEvent),
}

/// Passes the messages of a client to its terminal. While the shell reads nothing, none is read.
async fn receive(
    receiver: &mut SocketReceiver,
    attachment: &TerminalAttachment,
    paused: &watch::Sender<bool>,
    life: &Liveness,
) -> TerminalClose {
    loop {
        let message = receiver.next().await;
        life.heard();
        match message {
            Some(Ok(Message::Binary(bytes))) => {
                life.waits(true);
                // The other side learns of the end.
                let _ = attachment.input(bytes).await;
                life.waits(false);
            }
            Some(Ok(Message::Text(text))) => match terminal::control(&text) {
                Ok(Control::Resize(size)) => {
                    if let Some(size) = size.size() {
                        attachment.resize(size);
                    }
                }
                Ok(Control::Pause(pause)) => drop(paused.send_replace(pause)),
                Ok(Control::End(true)) => attachment.end(),
                Ok(Control::End(false)) => {}
                Err(expected) => return TerminalClose::Wrong(expected),
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) => return TerminalClose::Closed,
            Some(Err(error)) => {
                tracing::debug!("terminal: {error}");
                return if is_too_large(&error) {
                    TerminalClose::TooLarge
                } else {
                    TerminalClose::Gone
                };
            }
            None => return TerminalClose::Gone,
        }
    }
}

/// Sends the output of a terminal, and pings.
async fn send(
    sender: &mut SocketSender,
    attachment: &TerminalAttachment,
    mut pauses: watch::Receiver<bool>,
) -> TerminalClose {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_paused = *pauses.borrow_and_update();
        let message = tokio::select! {
            event = attachment.next(), if !is_paused => match event {
                AttachmentEvent::Output(bytes) => Message::Binary(bytes),
                event => return TerminalClose::Event(event),
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
            Ok(()) = pauses.changed() => continue,
        };
        if sender.send(message).await.is_err() {
            return TerminalClose::Gone;
        }
    }
}

fn text(notice: &Notice<'_>) -> Message {
    Message::Text(notice.text().into())
}

/// The code of the close frame.
fn code(event: &AttachmentEvent) -> u16 {
    match event {
        AttachmentEvent::Output(_)
        | AttachmentEvent::End(TerminalEnd::Exited(_) | TerminalEnd::Closed) => close_code::NORMAL,
        AttachmentEvent::End(
            TerminalEnd::Unreachable
            | TerminalEnd::HostKey
            | TerminalEnd::Password
            | TerminalEnd::NoShell
            | TerminalEnd::Lost,
        ) => close_code::ERROR,
        AttachmentEvent::End(TerminalEnd::Access) => close_code::POLICY,
        AttachmentEvent::End(TerminalEnd::NotRunning | TerminalEnd::Unattended) => NOT_RUNNING,
        AttachmentEvent::End(TerminalEnd::Shutdown) => close_code::AWAY,
        AttachmentEvent::Replaced => REPLACED,
    }
}
