//! A server in the place of a page. It answers with the head of the request, and at `/stream` without end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The pause between two pieces of a stream.
const PAUSE: Duration = Duration::from_millis(50);

pub struct PageServer {
    stopped: Arc<AtomicBool>,
}

impl PageServer {
    pub fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let stopped = Arc::new(AtomicBool::default());
        let stop = Arc::clone(&stopped);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => drop(std::thread::spawn(|| serve(stream))),
                    Err(_) => sleep(Duration::from_millis(5)),
                }
            }
        });
        Self { stopped }
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn serve(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(false);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    if head.starts_with(b"GET /stream ") {
        let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let mut sent = stream.write_all(begin.as_bytes());
        while sent.is_ok() {
            sleep(PAUSE);
            sent = stream.write_all(b"data: x\n\n");
        }
        return;
    }
    let begin = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        head.len()
    );
    let _ = stream.write_all(&[begin.as_bytes(), &head].concat());
}
