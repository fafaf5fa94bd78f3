//! Connections to a page: kept for a moment, for one incarnation, and never a request lost or repeated for it.

use crate::house::{HOST, Running};
use crate::page::{Server, body, head, respond, value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wharf_pages::directory::PageState;

const OWN: &str = "sec-fetch-site: same-origin";

/// The page closes connections that are idle for a second, and the visitors' requests come at that moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_closes_idle_connections_loses_no_post() {
    let server = Server::start(|mut io| async move {
        while let Ok(asked) = timeout(Duration::from_secs(1), head(&mut io)).await {
            let Some(asked) = asked? else { break };
            body(&mut io, &asked).await?;
            respond(&mut io, "200 OK", "", b"done").await?;
        }
        Ok(())
    })
    .await;
    let server = Arc::new(server);
    let visitor = |number: u64, server: Arc<Server>| async move {
        // Nobody else keeps its connection busy.
        let running = Running::start(&server).await;
        let cookie = running.cookie("owner").await;
        for round in 0..3 {
            let got = running.ask("GET", "/", &[&cookie]).await;
            assert!(got.starts_with("HTTP/1.1 200"), "{got}");
            sleep(Duration::from_millis(990 + (number + 7 * round) % 20)).await;
            let request = format!(
                "POST / HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n{cookie}\r\n{OWN}\r\n\
                 content-length: 2\r\n\r\nab"
            );
            let posted = running.exchange(request.as_bytes()).await;
            assert!(posted.starts_with("HTTP/1.1 200"), "{posted}");
        }
    };
    let visitors = (0..20).map(|number| visitor(number, Arc::clone(&server)));
    visitors.collect::<JoinSet<()>>().join_all().await;
}

/// The page ends each connection at its second request, as one that closes it at this moment.
#[tokio::test]
async fn a_get_is_repeated_once_and_a_post_never() {
    let posts = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&posts);
    let server = Server::start(move |mut io| {
        let counted = Arc::clone(&counted);
        async move {
            let asked = head(&mut io).await?.unwrap_or_default();
            if asked.starts_with("POST /lost") {
                counted.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            respond(&mut io, "200 OK", "", b"done").await?;
            head(&mut io).await.map(drop)
        }
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    for method in ["GET", "GET", "HEAD", "GET", "POST", "GET", "POST"] {
        let answer = running
            .ask(method, "/", &[&cookie, OWN, "content-length: 0"])
            .await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{method}: {answer}");
    }
    assert!(server.connections.load(Ordering::Relaxed) >= 4);
    let answer = running
        .ask("POST", "/lost", &[&cookie, OWN, "content-length: 0"])
        .await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert_eq!(posts.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_connection_is_kept_for_a_moment_and_for_one_incarnation() {
    let longest = Arc::<AtomicUsize>::default();
    let noted = Arc::clone(&longest);
    let server = Server::start(move |mut io| {
        let noted = Arc::clone(&noted);
        async move {
            while let Some(asked) = head(&mut io).await? {
                body(&mut io, &asked).await?;
                respond(&mut io, "200 OK", "", b"done").await?;
                let answered = Instant::now();
                if tokio::io::AsyncBufReadExt::fill_buf(&mut io)
                    .await?
                    .is_empty()
                {
                    let idle = answered.elapsed().as_millis().try_into().unwrap();
                    noted.fetch_max(idle, Ordering::Relaxed);
                }
            }
            Ok(())
        }
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let connections = || server.connections.load(Ordering::Relaxed);
    for _ in 0..3 {
        running.ask("GET", "/", &[&cookie]).await;
    }
    assert_eq!(connections(), 1);
    running.change(|page| match &mut page.state {
        PageState::Running(upstream) => upstream.incarnation += 1,
        _ => unreachable!(),
    });
    running.ask("GET", "/", &[&cookie]).await;
    assert_eq!(connections(), 2);
    sleep(Duration::from_millis(1_300)).await;
    let idle = longest.load(Ordering::Relaxed);
    assert!((1..=1_050).contains(&idle), "{idle} ms");
    running.ask("GET", "/", &[&cookie]).await;
    assert_eq!(connections(), 3);
}

/// A page that answers with something else than HTTP, or two lengths, costs that request alone.
#[tokio::test]
async fn broken_answers_are_not_passed_on() {
    for answer in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
    ] {
        let server = Server::start(move |mut io| async move {
            head(&mut io).await?;
            tokio::io::AsyncWriteExt::write_all(&mut io, answer.as_bytes()).await?;
            io.read_u8().await.map(drop)
        })
        .await;
        let running = Running::start(&server).await;
        let cookie = running.cookie("owner").await;
        let got = running.ask("GET", "/", &[&cookie]).await;
        assert!(got.starts_with("HTTP/1.1 502"), "{answer}: {got}");
    }
    // With both lengths, the chunks count.
    let server = Server::start(|mut io| async move {
        head(&mut io).await?;
        let both = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut io, both).await?;
        io.read_u8().await.map(drop)
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let got = running.ask("GET", "/", &[&cookie]).await;
    assert!(
        got.contains("3\r\nabc\r\n0\r\n\r\n") && value(&got, "content-length").is_none(),
        "{got}"
    );
}
