//! Bytes as they are sent and as they come back.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wharf_tests::Server;

/// Time without a byte after which nothing more is expected on an open connection.
const SILENCE: Duration = Duration::from_millis(700);

/// All that came back.
#[derive(Debug)]
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
    listen(&mut stream, SILENCE)
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
