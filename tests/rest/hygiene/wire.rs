//! Raw bytes of requests and answers. Every answer is checked against the OpenAPI document, as in
//! all tests.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wharf_conformance::wire::{Reply, replies};
use wharf_tests::{Answer, Server, agrees_with_document};

/// Time without a byte after which an open connection counts as silent.
const SILENCE: Duration = Duration::from_millis(700);

/// The bytes of all answers on a connection.
#[derive(Debug, Default)]
pub struct Answers {
    /// The status of each answer.
    pub statuses: Vec<u16>,
    /// Whether the server has closed the connection.
    pub closed: bool,
    /// All bytes.
    pub bytes: Vec<u8>,
}

impl Answers {
    /// Returns the bytes as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Appends later bytes.
    pub fn add(&mut self, more: Self) {
        self.statuses.extend(more.statuses);
        self.bytes.extend(more.bytes);
        self.closed = more.closed;
    }

    /// Asserts that the answers to the sent bytes match the OpenAPI document.
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

/// Returns method and path from the first line of a request.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (request, version) = line.rsplit_once(" HTTP/1.")?;
    matches!(version, "0" | "1").then(|| request.split_once(' '))?
}

/// Returns whether the HTTP layer itself refused the bytes: without a body and without a request
/// id.
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

/// Opens a connection.
pub fn connect(server: &Server) -> TcpStream {
    let address = server.base_url().strip_prefix("http://").unwrap();
    TcpStream::connect(address).unwrap()
}

/// Sends the bytes on a new connection, and listens until the server closes it or is silent.
pub fn send(server: &Server, bytes: &[u8]) -> Answers {
    let mut stream = connect(server);
    // The server may close the connection before all bytes are sent.
    let _ = stream.write_all(bytes);
    let heard = listen(&mut stream, SILENCE);
    heard.agrees_with(bytes);
    heard
}

/// Listens until the server closes the connection, or is silent for this time.
pub fn listen(stream: &mut TcpStream, silence: Duration) -> Answers {
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
    Answers {
        statuses,
        closed,
        bytes,
    }
}

/// Returns the resident memory of a process, in KiB.
pub fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}
