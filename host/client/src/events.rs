//! Server-sent events.

use crate::Error;
use crate::unreachable::Destination;

/// The most bytes of one message; an event of Wharf has a few hundred.
const MAX_MESSAGE: usize = 1 << 20;

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The type of the message.
    pub event: String,
    /// The id to continue after.
    pub id: Option<u64>,
    /// The data, which is JSON.
    pub data: String,
}

/// An open stream. It ends when the server stops, and can be continued after the last id.
#[derive(Debug)]
pub struct EventStream {
    response: reqwest::Response,
    server: Destination,
    lines: Lines,
}

impl EventStream {
    pub(crate) fn new(response: reqwest::Response, server: Destination) -> Self {
        Self {
            response,
            server,
            lines: Lines::default(),
        }
    }

    /// Waits for the next message; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        loop {
            if let Some(message) = self.lines.message() {
                return Ok(Some(message));
            }
            let bytes = self.response.chunk().await;
            match bytes.map_err(|error| self.server.unreachable(error))? {
                Some(bytes) if self.lines.rest.len() + bytes.len() <= MAX_MESSAGE => {
                    self.lines.rest.extend_from_slice(&bytes);
                }
                Some(_) => return Err(Error::Setup("a message of the stream is too long".into())),
                None => return Ok(None),
            }
        }
    }
}

/// Bytes that are not yet a message, and the fields of the message so far.
#[derive(Debug, Default)]
struct Lines {
    rest: Vec<u8>,
    message: Message,
}

impl Lines {
    /// Takes lines up to the end of a message. Messages without data, such as heartbeats, are skipped.
    fn message(&mut self) -> Option<Message> {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let message = std::mem::take(&mut self.message);
                if !message.data.is_empty() {
                    return Some(message);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.message.event),
                "id" => self.message.id = value.parse().ok(),
                "data" if self.message.data.is_empty() => value.clone_into(&mut self.message.data),
                "data" => {
                    self.message.data.push('\n');
                    self.message.data.push_str(value);
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Message};

    #[test]
    fn messages_are_found_in_pieces_of_any_size() {
        let text = "retry: 2000\n\nevent: ready\nid: 4\ndata: {}\n\n: heartbeat\n\n\
                    event: event\r\nid: 5\r\ndata: a\r\ndata: b\r\n\r\n";
        let message = |event: &str, id, data: &str| Message {
            event: event.to_owned(),
            id: Some(id),
            data: data.to_owned(),
        };
        let expected = [message("ready", 4, "{}"), message("event", 5, "a\nb")];
        for size in [1, 3, 7, text.len()] {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                lines.rest.extend_from_slice(piece);
                while let Some(message) = lines.message() {
                    found.push(message);
                }
            }
            assert_eq!(found, expected, "pieces of {size}");
        }
    }
}
