//! A client of a tunnel.

use crate::Api;
use crate::terminal::{Refused, open_socket};
use anyhow::{Result, bail};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::{Bytes, Message, WebSocket};

const PROTOCOL: &str = "wharf.tunnel.v1";
/// The longest wait for a message, after which a test has failed.
const SILENCE: Duration = Duration::from_secs(120);

/// An open tunnel.
pub struct Tunnel {
    socket: WebSocket<TcpStream>,
}

impl Tunnel {
    /// Opens a tunnel that must open.
    pub fn open(api: &Api, instance: &str, port: u16) -> Result<Self> {
        match Self::try_open(api, instance, &format!("?port={port}"))? {
            Ok(tunnel) => Ok(tunnel),
            Err(refused) => bail!("{}: {}", refused.status, refused.body),
        }
    }

    /// Opens a tunnel, or returns the refusal.
    pub fn try_open(api: &Api, instance: &str, query: &str) -> Result<Result<Self, Refused>> {
        let key = format!("Bearer {}", api.key());
        Self::try_open_from(api.base_url(), &[("Authorization", &key)], instance, query)
    }

    /// Opens a tunnel with these headers, or returns the refusal.
    pub fn try_open_from(
        base_url: &str,
        headers: &[(&'static str, &str)],
        instance: &str,
        query: &str,
    ) -> Result<Result<Self, Refused>> {
        let path = format!("/api/instance/{instance}/tunnel/{query}");
        let socket = open_socket(base_url, headers, &path, PROTOCOL)?;
        if let Ok(socket) = &socket {
            socket.get_ref().set_read_timeout(Some(SILENCE))?;
        }
        Ok(socket.map(|socket| Self { socket }))
    }

    /// Sends bytes, in messages of at most 64 KiB.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(64 * 1024) {
            self.message(part)?;
        }
        Ok(())
    }

    /// Sends one message.
    pub fn message(&mut self, bytes: &[u8]) -> Result<()> {
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        Ok(self.socket.send(message)?)
    }

    /// Sends a text message, which is wrong.
    pub fn text(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.send(Message::text(text))?)
    }

    /// Ends the bytes to the port.
    pub fn finish(&mut self) -> Result<()> {
        self.message(&[])
    }

    /// Waits for the next bytes, which are empty at their end.
    pub fn read(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.socket.read()? {
                Message::Binary(bytes) => return Ok(bytes.to_vec()),
                Message::Close(frame) => bail!("closed: {frame:?}"),
                Message::Text(text) => bail!("text: {text}"),
                _ => {}
            }
        }
    }

    /// Reads this number of bytes.
    pub fn read_exact(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < length {
            let bytes = self.read()?;
            if bytes.is_empty() {
                bail!("the end after {} of {length} bytes", all.len());
            }
            all.extend(bytes);
        }
        Ok(all)
    }

    /// Reads to the end of the bytes.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let bytes = self.read()?;
            if bytes.is_empty() {
                return Ok(all);
            }
            all.extend(bytes);
        }
    }

    /// Reads to the close frame. Returns its code and reason; none if the connection broke.
    pub fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => {
                    let frame = frame?;
                    return Some((frame.code.into(), frame.reason.to_string()));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
