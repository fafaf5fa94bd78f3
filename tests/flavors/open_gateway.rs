//! A gateway in front of one page that adds the page's credential and checks nothing. It shows that attacks on
//! a page work where the server's gateway does not refuse them.

use anyhow::Result;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub struct OpenGateway {
    port: u16,
    stopped: Arc<AtomicBool>,
}

impl OpenGateway {
    /// Starts a gateway to the page at a port of this machine.
    pub fn start(page: u16, credential: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let gateway = Self {
            port: listener.local_addr()?.port(),
            stopped: Arc::default(),
        };
        let (stopped, credential) = (Arc::clone(&gateway.stopped), credential.to_owned());
        thread::spawn(move || {
            for visitor in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let credential = credential.clone();
                thread::spawn(move || exchange(visitor, page, &credential));
            }
        });
        Ok(gateway)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for OpenGateway {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Passes one request, or the bytes of a WebSocket after it.
fn exchange(visitor: TcpStream, page: u16, credential: &str) -> io::Result<()> {
    let mut from_visitor = BufReader::new(visitor.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if from_visitor.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        head.push(line);
    }
    let is_upgrade =
        (head.iter()).any(|line| line.to_lowercase().starts_with("upgrade: websocket"));
    if !is_upgrade {
        head.retain(|line| !line.to_lowercase().starts_with("connection:"));
        head.push("Connection: close\r\n".to_owned());
    }
    head.push(format!("Authorization: {credential}\r\n\r\n"));
    let mut to_page = TcpStream::connect(("127.0.0.1", page))?;
    to_page.write_all(head.concat().as_bytes())?;
    let mut from_page = to_page.try_clone()?;
    let mut to_visitor = visitor;
    thread::spawn(move || {
        io::copy(&mut from_page, &mut to_visitor)?;
        to_visitor.shutdown(Shutdown::Both)
    });
    io::copy(&mut from_visitor, &mut to_page)?;
    to_page.shutdown(Shutdown::Write)
}
