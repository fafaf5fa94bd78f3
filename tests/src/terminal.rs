//! A client of a terminal.

use crate::Api;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::{Bytes, Error, Message, WebSocket};

const PROTOCOL: &str = "wharf.terminal.v1";

/// The most time for a message.
const MESSAGE: Duration = Duration::from_secs(60);

/// An open terminal.
pub struct Terminal {
    socket: WebSocket<TcpStream>,
    /// The id to attach again with.
    pub session: String,
    /// The number of bytes that were written before.
    pub replayed: u64,
    /// All bytes so far.
    pub output: Vec<u8>,
    /// Time of the upgrade.
    pub upgraded: Instant,
}

/// The next thing from a terminal.
#[derive(Debug)]
pub enum Heard {
    /// The number of further bytes of output.
    Output(usize),
    /// A text message.
    Control(Value),
    /// The close frame's code and reason, or none if the connection broke.
    Closed(Option<(u16, String)>),
}

/// The refusal of a terminal or a tunnel.
#[derive(Debug)]
pub struct Refused {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

/// Opens a WebSocket with these headers, or returns the refusal.
pub(crate) fn open_socket(
    base_url: &str,
    headers: &[(&'static str, &str)],
    path: &str,
    protocol: &str,
) -> Result<Result<WebSocket<TcpStream>, Refused>> {
    let address = base_url.strip_prefix("http://").context("a URL")?;
    let mut request = format!("ws://{address}{path}").into_client_request()?;
    for (name, value) in [headers, &[("Sec-WebSocket-Protocol", protocol)]].concat() {
        request.headers_mut().insert(name, value.parse()?);
    }
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(MESSAGE))?;
    stream.set_nodelay(true)?;
    let (socket, answer) = match tungstenite::client(request, stream) {
        Ok(opened) => opened,
        Err(HandshakeError::Failure(Error::Http(answer))) => {
            let body = answer.body().as_deref().unwrap_or_default();
            return Ok(Err(Refused {
                status: answer.status().as_u16(),
                body: serde_json::from_slice(body).unwrap_or(Value::Null),
            }));
        }
        Err(error) => bail!("{error}"),
    };
    let chosen = answer.headers().get("Sec-WebSocket-Protocol");
    ensure!(
        chosen.is_some_and(|chosen| chosen == protocol),
        "{answer:?}"
    );
    Ok(Ok(socket))
}

impl Terminal {
    /// Opens a terminal that must open.
    pub fn open(api: &Api, instance: &str, query: &str) -> Result<Self> {
        match Self::try_open(api, instance, query)? {
            Ok(terminal) => Ok(terminal),
            Err(refused) => bail!("{}: {}", refused.status, refused.body),
        }
    }

    /// Opens a terminal, or returns the refusal.
    pub fn try_open(api: &Api, instance: &str, query: &str) -> Result<Result<Self, Refused>> {
        let key = format!("Bearer {}", api.key());
        Self::try_open_from(api.base_url(), &[("Authorization", &key)], instance, query)
    }

    /// Opens a terminal with these headers, or returns the refusal.
    pub fn try_open_from(
        base_url: &str,
        headers: &[(&'static str, &str)],
        instance: &str,
        query: &str,
    ) -> Result<Result<Self, Refused>> {
        let path = format!("/api/instance/{instance}/terminal/{query}");
        let socket = match open_socket(base_url, headers, &path, PROTOCOL)? {
            Ok(socket) => socket,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut terminal = Self {
            socket,
            session: String::new(),
            replayed: 0,
            output: Vec::new(),
            upgraded: Instant::now(),
        };
        let Heard::Control(first) = terminal.hear()? else {
            bail!("no session");
        };
        first["session"]
            .as_str()
            .context("no id")?
            .clone_into(&mut terminal.session);
        terminal.replayed = first["replayed"].as_u64().context("no number")?;
        Ok(Ok(terminal))
    }

    /// Sends bytes to the shell.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        Ok(self.socket.send(message)?)
    }

    /// Sends a text message.
    pub fn control(&mut self, control: &Value) -> Result<()> {
        self.text(&control.to_string())
    }

    /// Sends any text.
    pub fn text(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.send(Message::text(text))?)
    }

    /// Tells the size of the window.
    pub fn resize(&mut self, cols: u16, rows: u16) -> Result<()> {
        self.control(&json!({ "resize": { "cols": cols, "rows": rows } }))
    }

    /// Returns a second handle of the connection.
    pub fn stream(&self) -> Result<TcpStream> {
        Ok(self.socket.get_ref().try_clone()?)
    }

    /// Waits for the next thing. Pings of the server are none.
    pub fn hear(&mut self) -> Result<Heard> {
        let begin = Instant::now();
        loop {
            ensure!(
                begin.elapsed() < MESSAGE,
                "nothing for {MESSAGE:?} after {}",
                self.tail()
            );
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => {
                    self.output.extend_from_slice(&bytes);
                    return Ok(Heard::Output(bytes.len()));
                }
                Ok(Message::Text(text)) => return Ok(Heard::Control(serde_json::from_str(&text)?)),
                Ok(Message::Close(frame)) => {
                    let heard = |frame: CloseFrame| (frame.code.into(), frame.reason.to_string());
                    return Ok(Heard::Closed(frame.map(heard)));
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    bail!("nothing for {MESSAGE:?} after {}", self.tail());
                }
                Err(_) => return Ok(Heard::Closed(None)),
            }
        }
    }

    /// Waits until the output has a text from `from` on, and returns the position after it.
    pub fn wait_for_from(&mut self, from: usize, text: &str) -> Result<usize> {
        loop {
            let output = self.output.get(from..).unwrap_or_default();
            let found = output
                .windows(text.len())
                .position(|w| w == text.as_bytes());
            if let Some(found) = found {
                return Ok(from + found + text.len());
            }
            match self.hear()? {
                Heard::Output(_) => {}
                other => bail!("{other:?} instead of {text:?} after {}", self.tail()),
            }
        }
    }

    /// Sends a line and waits for a text in the output that follows.
    pub fn run(&mut self, line: &str, expected: &str) -> Result<()> {
        let from = self.output.len();
        self.send(format!("{line}\r").as_bytes())?;
        self.wait_for_from(from, expected)?;
        Ok(())
    }

    /// Reads to the end. Returns the last text message, and the code of the close frame.
    pub fn end(&mut self) -> Result<(Value, Option<u16>)> {
        let mut last = Value::Null;
        loop {
            match self.hear()? {
                Heard::Output(_) => {}
                Heard::Control(control) => last = control,
                Heard::Closed(frame) => return Ok((last, frame.map(|(code, _)| code))),
            }
        }
    }

    fn tail(&self) -> String {
        let start = self.output.len().saturating_sub(200);
        String::from_utf8_lossy(self.output.get(start..).unwrap_or_default()).into_owned()
    }
}
