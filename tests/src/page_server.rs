//! A server in the place of a page. It answers with the head of the request, at `/stream` and `/flood` without end,
//! opens a WebSocket at `/ws`, and at `/attack` tries to use another page.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use tungstenite::handshake::derive_accept_key;

/// The pause between two pieces of a stream.
const PAUSE: Duration = Duration::from_millis(50);

/// A page that does to the origin in its query what a page elsewhere must not.
const ATTACK: &str = "<!doctype html><title>begun</title><script type=module>
const target = new URLSearchParams(location.search).get('target');
const options = { mode: 'no-cors', credentials: 'include' };
const socket = new WebSocket(target.replace('http', 'ws') + '/ws');
const socketEnds = new Promise((end) => {
  socket.onopen = () => end('open');
  socket.onerror = () => end('refused');
});
await fetch(target + '/write', { ...options, method: 'POST', body: 'x' }).catch(() => {});
await fetch(target + '/read', options).catch(() => {});
const frame = document.createElement('iframe');
const frameEnds = new Promise((end) => (frame.onload = end));
frame.src = target + '/frame';
document.documentElement.append(frame);
await frameEnds;
document.title = 'socket ' + (await socketEnds);
</script>";

/// A server in the place of a page, until it is dropped.
pub struct PageServer {
    stopped: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<String>>>,
    flooded: Arc<AtomicU64>,
}

impl PageServer {
    /// Starts at a port of the loopback.
    ///
    /// # Panics
    ///
    /// Panics if the port is taken.
    #[allow(clippy::unwrap_used, reason = "a test without its server must end")]
    pub fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = Self {
            stopped: Arc::default(),
            seen: Arc::default(),
            flooded: Arc::default(),
        };
        let (stopped, seen) = (Arc::clone(&server.stopped), Arc::clone(&server.seen));
        let flooded = Arc::clone(&server.flooded);
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let (seen, flooded) = (Arc::clone(&seen), Arc::clone(&flooded));
                match listener.accept() {
                    Ok((stream, _)) => {
                        drop(std::thread::spawn(move || serve(stream, &seen, &flooded)));
                    }
                    Err(_) => sleep(Duration::from_millis(5)),
                }
            }
        });
        server
    }

    /// The pieces that floods have sent.
    pub fn flooded(&self) -> u64 {
        self.flooded.load(Ordering::Relaxed)
    }

    /// Whether a request for a path has come.
    pub fn has_seen(&self, path: &str) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().any(|head| head.split(' ').nth(1) == Some(path))
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, flooded: &AtomicU64) {
    let _ = stream.set_nonblocking(false);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut all = seen.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(head.clone());
    drop(all);
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path == "/stream" {
        let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let mut sent = stream.write_all(begin.as_bytes());
        while sent.is_ok() {
            sleep(PAUSE);
            sent = stream.write_all(b"data: x\n\n");
        }
        return;
    }
    if path == "/flood" {
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&[b'x'; 16 * 1024]);
            flooded.fetch_add(1, Ordering::Relaxed);
        }
        return;
    }
    if path == "/ws" {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let key = lines.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
        let accept = derive_accept_key(key.map_or("", |(_, key)| key).as_bytes());
        let begin = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        let _ = stream.write_all(begin.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
        return;
    }
    let (kind, body) = if path.starts_with("/attack") {
        ("text/html", ATTACK)
    } else {
        ("text/plain", head.as_str())
    };
    let begin = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[begin.as_bytes(), body.as_bytes()].concat());
}
