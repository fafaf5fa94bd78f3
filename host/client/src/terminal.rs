//! Terminals of instances, on WebSockets.

use crate::socket::Socket;
use crate::{Client, Error};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message};

const PATH: &str = "/api/instance/{uuid}/terminal/";
const PROTOCOL: &str = "wharf.terminal.v1";
/// The most bytes of one message of input; the server takes 1 MiB.
const MAX_INPUT: usize = 64 * 1024;

/// The side of an open terminal that writes.
#[derive(Debug)]
pub struct TerminalInput(SplitSink<Socket, Message>);

/// The side of an open terminal that reads.
#[derive(Debug)]
pub struct TerminalOutput {
    socket: SplitStream<Socket>,
    session: String,
    replayed: u64,
}

/// An event of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminalEvent {
    /// Bytes for the screen.
    Output(Bytes),
    /// The shell has ended, with its exit code if it has one.
    Exited(Option<u32>),
    /// The terminal has ended for another reason, in words.
    Failed(String),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    /// The number of columns.
    pub cols: u16,
    /// The number of rows.
    pub rows: u16,
}

impl Client {
    /// Opens a terminal of this size, or attaches to the one of `session`.
    pub async fn open_terminal(
        &self,
        instance: &str,
        size: WindowSize,
        session: Option<&str>,
    ) -> Result<(TerminalInput, TerminalOutput), Error> {
        let request = self.operation::<()>(Method::GET, PATH, &[instance]);
        let request = request
            .query("cols", Some(size.cols))
            .query("rows", Some(size.rows))
            .query("session", session);
        let socket = request.socket(PROTOCOL).await?;
        let (input, socket) = socket.split();
        let mut output = TerminalOutput {
            socket,
            session: String::new(),
            replayed: 0,
        };
        let first = match output.message().await? {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap_or_default(),
            _ => Value::Null,
        };
        let session = first.get("session").and_then(Value::as_str);
        match (session, first.get("replayed").and_then(Value::as_u64)) {
            (Some(session), Some(replayed)) => {
                session.clone_into(&mut output.session);
                output.replayed = replayed;
            }
            _ => return Err(Error::Setup("the terminal has no session".into())),
        }
        Ok((TerminalInput(input), output))
    }
}

impl TerminalInput {
    /// Writes bytes to the shell. Waits while it does not read.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for part in bytes.chunks(MAX_INPUT) {
            let message = Message::Binary(Bytes::copy_from_slice(part));
            self.send(message).await?;
        }
        Ok(())
    }

    /// Sets the size.
    pub async fn resize(&mut self, size: WindowSize) -> Result<(), Error> {
        let control = json!({ "resize": { "cols": size.cols, "rows": size.rows } });
        self.send(Message::text(control.to_string())).await
    }

    /// Ends the terminal.
    pub async fn end(&mut self) -> Result<(), Error> {
        let control = json!({ "end": true });
        self.send(Message::text(control.to_string())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        let sent = self.0.send(message).await;
        sent.map_err(|error| Error::Disconnected(error.into()))
    }
}

impl TerminalOutput {
    /// The id with which to attach again after a lost connection.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The number of bytes that come first and were written before.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Waits for the next event; none if the terminal was ended by [`TerminalInput::end`].
    pub async fn next(&mut self) -> Result<Option<TerminalEvent>, Error> {
        loop {
            let text = match self.message().await? {
                Some(Message::Binary(bytes)) => return Ok(Some(TerminalEvent::Output(bytes))),
                Some(Message::Text(text)) => text,
                Some(Message::Close(Some(frame))) if frame.code == CloseCode::Normal => {
                    return Ok(None);
                }
                Some(Message::Close(_)) | None => {
                    return Err(Error::Disconnected(
                        "the server closed the WebSocket".into(),
                    ));
                }
                Some(_) => continue,
            };
            let control: Value = serde_json::from_str(&text).unwrap_or_default();
            if let Some(error) = control.get("error").and_then(Value::as_str) {
                let error = error.to_owned();
                // The code of the close frame, which follows, tells whether the server comes back.
                return match self.message().await {
                    Ok(Some(Message::Close(Some(frame)))) if frame.code == CloseCode::Away => {
                        Err(Error::Disconnected(error.into()))
                    }
                    _ => Ok(Some(TerminalEvent::Failed(error))),
                };
            }
            if let Some(code) = control.get("exit") {
                let code = code.as_u64().and_then(|code| u32::try_from(code).ok());
                return Ok(Some(TerminalEvent::Exited(code)));
            }
        }
    }

    async fn message(&mut self) -> Result<Option<Message>, Error> {
        let message = self.socket.next().await.transpose();
        message.map_err(|error| Error::Disconnected(error.into()))
    }
}
