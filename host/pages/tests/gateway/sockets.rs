//! WebSockets: bytes pass only after the page's own answer to that upgrade.

use crate::client::Raw;
use crate::house::{HOST, ORIGIN, Running};
use crate::page::{Server, Stream, head, respond, value};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The example of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Connects and asks for a WebSocket, with these bytes behind the request.
pub async fn open(running: &Running, credential: &str, early: &str) -> Raw {
    let mut connection = running.tls.connect(running.address).await;
    connection.send(request(credential, early).as_bytes()).await;
    connection
}

/// A request for a WebSocket, with these bytes behind it.
pub fn request(credential: &str, early: &str) -> String {
    format!(
        "GET /api/kernels HTTP/1.1\r\nhost: {HOST}\r\n{credential}\r\norigin: {ORIGIN}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n{early}"
    )
}

/// Accepts WebSockets, and sends back all bytes.
pub async fn echo(mut io: Stream) -> io::Result<()> {
    let asked = head(&mut io).await?.unwrap_or_default();
    assert_eq!(value(&asked, "upgrade"), Some("websocket"), "{asked}");
    assert_eq!(value(&asked, "sec-websocket-key"), Some(KEY), "{asked}");
    accept(
        &mut io,
        &format!("sec-websocket-accept: {ACCEPT}\r\nsec-websocket-protocol: v1\r\n"),
    )
    .await?;
    let mut piece = vec![0; 65_536];
    loop {
        let read = io.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        io.write_all(&piece[..read]).await?;
    }
}

async fn accept(io: &mut Stream, lines: &str) -> io::Result<()> {
    let head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n";
    io.write_all(format!("{head}{lines}\r\n").as_bytes()).await
}

#[tokio::test]
async fn bytes_pass_both_ways_after_the_answer_of_the_page() {
    let server = Server::start(echo).await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut socket = open(&running, &cookie, "early").await;
    let answered = socket.head().await;
    assert!(answered.starts_with("HTTP/1.1 101"), "{answered}");
    assert_eq!(value(&answered, "sec-websocket-accept"), Some(ACCEPT));
    assert_eq!(value(&answered, "sec-websocket-protocol"), Some("v1"));
    assert_eq!(socket.bytes(5).await, b"early");
    for size in [1, 1_000, 100_000] {
        let sent = vec![b'x'; size];
        socket.send(&sent).await;
        assert!(socket.bytes(size).await == sent);
    }
    drop(socket);
}

/// Without the answer of the page, the visitor's bytes are requests, and each is checked.
#[tokio::test]
async fn nothing_is_tunnelled_without_the_answer_of_the_page() {
    const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: demo.pages.example\r\n\r\n";
    for lines in [
        // Nothing accepted, another key accepted, and another protocol.
        "",
        "sec-websocket-accept: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nupgrade: h2c\r\n",
        "refused",
    ] {
        let got_more = Arc::<AtomicBool>::default();
        let noted = Arc::clone(&got_more);
        let server = Server::start(move |mut io| {
            let noted = Arc::clone(&noted);
            async move {
                head(&mut io).await?;
                match lines {
                    "refused" => respond(&mut io, "403 Forbidden", "", b"no").await?,
                    _ => accept(&mut io, lines).await?,
                }
                io.write_all(b"injected").await?;
                let more = io.read(&mut [0; 64]).await.is_ok_and(|read| read > 0);
                noted.fetch_or(more, Ordering::Relaxed);
                Ok(())
            }
        })
        .await;
        let running = Running::start(&server).await;
        let cookie = running.cookie("owner").await;
        let mut socket = open(&running, &cookie, SMUGGLED).await;
        let answered = socket.head().await;
        let status = if lines == "refused" { "403" } else { "502" };
        assert!(
            answered.starts_with(&format!("HTTP/1.1 {status}")),
            "{lines}: {answered}"
        );
        socket
            .send(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
            .await;
        let rest = socket.rest(Duration::from_secs(5)).await;
        assert!(
            !rest.contains("injected") && !rest.contains("HTTP/1.1 2"),
            "{lines}: {rest}"
        );
        assert!(!got_more.load(Ordering::Relaxed), "{lines}");
        assert!(
            lines != "refused" || rest.contains("HTTP/1.1 401"),
            "{rest}"
        );
    }
}

#[tokio::test]
async fn an_upgrade_that_nobody_asked_for_is_a_broken_answer() {
    let server = Server::start(|mut io| async move {
        head(&mut io).await?;
        accept(&mut io, &format!("sec-websocket-accept: {ACCEPT}\r\n")).await?;
        io.write_all(b"injected").await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let answer = running.ask("GET", "/", &[&cookie]).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") && !answer.contains("injected"),
        "{answer}"
    );
}

/// The visitor does not read, so the page is held back. Its bytes come later, and whole.
#[tokio::test]
async fn a_slow_visitor_holds_back_a_socket() {
    const ALL: usize = 64 << 20;
    let server = Server::start(|mut io| async move {
        head(&mut io).await?;
        accept(&mut io, &format!("sec-websocket-accept: {ACCEPT}\r\n")).await?;
        let begun = std::time::Instant::now();
        io.write_all(&vec![b'x'; ALL]).await?;
        let held_back = begun.elapsed() >= Duration::from_millis(900);
        io.write_all(if held_back { b"held" } else { b"free" })
            .await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut socket = open(&running, &cookie, "").await;
    socket.head().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all = socket.bytes(ALL).await;
    assert!(all.iter().all(|byte| *byte == b'x'));
    assert_eq!(socket.bytes(4).await, b"held");
}
