//! Bytes as they are sent and as they come back. Every answer among them is held against the
//! OpenAPI document, as all answers of the tests are.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wharf_conformance::wire::{Reply, replies};
use wharf_tests::{Answer, Server, agrees_with_document};

/// Time without a byte after which nothing more is expected on an open connection.
const SILENCE: Duration = Duration::from_millis(700);

/// All that came back.
#[derive(Debug, Default)]
pub struct Heard {
    /// Status of each answer.
    pub statuses: Vec<u16>,
    /// The server has closed the connection.
    pub closed: bool,
    /// Every byte.
    pub bytes: Vec<u8>,
}

impl Heard {
    /// The bytes as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Takes in what came after it.
    pub fn add(&mut self, more: Self) {
        self.statuses.extend(more.statuses);
        self.bytes.extend(more.bytes);
        self.closed = more.closed;
    }

    /// Fails unless the answers are as the OpenAPI document says they are for what was sent.
    pub fn agrees_with(&self, sent: &[u8]) {
        let sent = String::from_utf8_lossy(sent);
        let mut requests = sent.split("\r\n").filter_map(request_line);
        let replies = replies(&self.bytes).unwrap_or_else(|error| panic!("{error:#}: {self:?}"));
        for reply in replies.into_iter().filter(|reply| reply.status >= 200) {
            let request = requests.next();
            if no_request(&reply) {
                continue;
            }
            let (method, path) = request.expect("an answer to no request");
            agrees(method, path, reply);
        }
    }
}

/// Method and path of the first line of a request.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (request, version) = line.rsplit_once(" HTTP/1.")?;
    matches!(version, "0" | "1").then(|| request.split_once(' '))?
}

/// What is no request for the server is refused by HTTP itself, without a body.
fn no_request(reply: &Reply) -> bool {
    let refused = matches!(reply.status, 400 | 414 | 431);
    refused && reply.body.is_empty() && !reply.headers.contains_key("x-request-id")
}

fn agrees(method: &str, path: &str, reply: Reply) {
    let mut body = reply.body;
    if reply
        .headers
        .get("content-encoding")
        .is_some_and(|coding| coding == "gzip")
    {
        let mut unpacked = Vec::new();
        GzDecoder::new(&body[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        body = unpacked;
    }
    let has_body = !body.is_empty();
    let answer = Answer {
        status: reply.status,
        headers: reply.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    agrees_with_document(method, path, &answer, has_body).unwrap();
}

/// A connection of its own.
pub fn connect(server: &Server) -> TcpStream {
    let address = server.base_url().strip_prefix("http://").unwrap();
    TcpStream::connect(address).unwrap()
}

/// Sends the bytes on a connection of their own, and listens until the server closes it or has
/// nothing more to say.
pub fn send(server: &Server, bytes: &[u8]) -> Heard {
    let mut stream = connect(server);
    // A server that has heard enough may close while there is more to send.
    let _ = stream.write_all(bytes);
    let heard = listen(&mut stream, SILENCE);
    heard.agrees_with(bytes);
    heard
}

/// Listens until the server closes the connection, or is silent for so long.
pub fn listen(stream: &mut TcpStream, silence: Duration) -> Heard {
    stream.set_read_timeout(Some(silence)).unwrap();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 65536];
    let closed = loop {
        match stream.read(&mut piece) {
            Ok(0) => break true,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break false;
            }
            Err(_) => break true,
        }
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let statuses = ["HTTP/1.1 ", "HTTP/1.0 "]
        .iter()
        .flat_map(|version| text.split(version).skip(1))
        .map(|rest| rest[..3].parse().unwrap())
        .collect();
    Heard {
        statuses,
        closed,
        bytes,
    }
}

/// Resident memory of a process, KiB.
pub fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}
