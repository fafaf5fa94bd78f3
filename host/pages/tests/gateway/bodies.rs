//! Bodies: large ones both ways, slow readers, and bytes that come at once.

use crate::house::{HOST, Running};
use crate::page::{Server, body, head, respond, value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const ALL: usize = 200 << 20;

/// The byte at a place of the test's content.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

fn content() -> Vec<u8> {
    let period: Vec<u8> = (0..251 * 1_024).map(byte).collect();
    let mut content = Vec::with_capacity(ALL);
    while content.len() < ALL {
        let rest = (ALL - content.len()).min(period.len());
        content.extend_from_slice(&period[..rest]);
    }
    content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_megabytes_go_each_way_unchanged() {
    let server = Server::start(|mut io| async move {
        while let Some(asked) = head(&mut io).await? {
            if asked.starts_with("GET") {
                respond(&mut io, "200 OK", "", &content()).await?;
                continue;
            }
            let length: usize = value(&asked, "content-length").unwrap().parse().unwrap();
            let mut got = vec![0; length];
            io.read_exact(&mut got).await?;
            let told = if got == content() {
                "unchanged"
            } else {
                "changed"
            };
            respond(&mut io, "200 OK", "", told.as_bytes()).await?;
        }
        Ok(())
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let sent = content();
    let mut visitor = running.tls.connect(running.address).await;
    let get = format!("GET / HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n");
    visitor.send(get.as_bytes()).await;
    let head = visitor.head().await;
    assert_eq!(
        value(&head, "content-length"),
        Some(&*ALL.to_string()),
        "{head}"
    );
    let mut got = vec![0; ALL];
    visitor.0.read_exact(&mut got).await.unwrap();
    assert!(got == sent);
    let post = format!(
        "POST / HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\norigin: https://{HOST}\r\ncontent-length: {ALL}\r\n\r\n"
    );
    visitor.send(post.as_bytes()).await;
    visitor.0.write_all(&sent).await.unwrap();
    assert!(visitor.head().await.starts_with("HTTP/1.1 200"));
    assert_eq!(visitor.bytes(9).await, b"unchanged");
}

/// Chunks stay chunks, without trailers and their extensions.
#[tokio::test]
async fn chunks_pass_and_trailers_do_not() {
    let server = Server::start(|mut io| async move {
        let asked = head(&mut io).await?.unwrap_or_default();
        let length = body(&mut io, &asked).await?;
        let chunk = format!("{asked}{length}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-last\r\n\r\n{:x};ext\r\n{chunk}\r\n0\r\nx-last: b\r\n\r\n",
            chunk.len()
        );
        io.write_all(answer.as_bytes()).await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n{cookie}\r\norigin: https://{HOST}\r\n\
         trailer: host\r\ntransfer-encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nhost: evil\r\n\r\n"
    );
    let answer = running.exchange(request.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("chunked\n5\r\n"),
        "{answer}"
    );
    assert!(
        !answer.contains("evil") && !answer.contains("x-last") && !answer.contains(";ext"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_slow_visitor_holds_back_the_page() {
    let written = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&written);
    let server = Server::start(move |mut io| {
        let counted = Arc::clone(&counted);
        async move {
            head(&mut io).await?;
            let start = format!("HTTP/1.1 200 OK\r\ncontent-length: {ALL}\r\n\r\n");
            io.write_all(start.as_bytes()).await?;
            for piece in content().chunks(65_536) {
                io.write_all(piece).await?;
                counted.fetch_add(piece.len(), Ordering::Relaxed);
            }
            Ok(())
        }
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = running.tls.connect(running.address).await;
    let get = format!("GET / HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n");
    visitor.send(get.as_bytes()).await;
    visitor.head().await;
    sleep(Duration::from_millis(800)).await;
    let first = written.load(Ordering::Relaxed);
    sleep(Duration::from_millis(400)).await;
    // The rest is in the buffers of sockets.
    assert_eq!(written.load(Ordering::Relaxed), first);
    assert!(first < 32 << 20, "{first}");
    let mut got = vec![0; ALL];
    visitor.0.read_exact(&mut got).await.unwrap();
    assert!(got == content());
}

#[tokio::test]
async fn a_slow_page_holds_back_the_visitor() {
    let server = Server::start(|mut io| async move {
        let asked = head(&mut io).await?.unwrap_or_default();
        sleep(Duration::from_millis(1_200)).await;
        let length = body(&mut io, &asked).await?;
        respond(&mut io, "200 OK", "", length.to_string().as_bytes()).await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = running.tls.connect(running.address).await;
    let post = format!(
        "POST / HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\norigin: https://{HOST}\r\ncontent-length: {ALL}\r\n\r\n"
    );
    visitor.send(post.as_bytes()).await;
    let (sent, mut written) = (content(), 0);
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(800) {
        let write = visitor.0.write(&sent[written..]);
        match tokio::time::timeout(Duration::from_millis(100), write).await {
            Ok(more) => written += more.unwrap(),
            Err(_) => continue,
        }
    }
    assert!(written < 32 << 20, "{written}");
    visitor.0.write_all(&sent[written..]).await.unwrap();
    visitor.0.flush().await.unwrap();
    visitor.head().await;
    assert_eq!(visitor.bytes(9).await, ALL.to_string().as_bytes());
}

/// An event of a page is at its visitor before the next one is made.
#[tokio::test]
async fn events_arrive_at_once() {
    let server = Server::start(|mut io| async move {
        head(&mut io).await?;
        io.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            .await?;
        for _ in 0..3 {
            io.write_all(b"data: x\n\n").await?;
            sleep(Duration::from_millis(300)).await;
        }
        Ok(())
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut visitor = running.tls.connect(running.address).await;
    let get = format!("GET / HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n");
    visitor.send(get.as_bytes()).await;
    visitor.head().await;
    for _ in 0..3 {
        let begun = std::time::Instant::now();
        // The length of a chunk and its end.
        assert!(visitor.bytes(3 + 9 + 2).await.ends_with(b"data: x\n\n\r\n"));
        assert!(begun.elapsed() < Duration::from_millis(450));
    }
}
