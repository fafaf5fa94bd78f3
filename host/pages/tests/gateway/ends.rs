//! The ends of exchanges: with the session, the right, the instance and its password, and their number.

use crate::client::Raw;
use crate::house::{BASIC, HOST, Running};
use crate::page::{Server, Stream, head};
use crate::sockets;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_pages::directory::PageState;
use wharf_pages::{AcceptedConnection, PageLimits};

/// A right that has ended ends connections within this time.
const BOUND: Duration = Duration::from_secs(2);

/// Answers a GET with a body that begins and does not end, and a WebSocket by an echo.
async fn endless(mut io: Stream) -> io::Result<()> {
    let asked = io.fill_head().await?;
    if asked.contains("upgrade: websocket") {
        return sockets::echo(io).await;
    }
    head(&mut io).await?;
    io.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        .await?;
    let _ = io.read(&mut [0; 64]).await;
    Ok(())
}

/// Looks at a head without taking it.
trait FillHead {
    async fn fill_head(&mut self) -> io::Result<String>;
}

impl FillHead for Stream {
    async fn fill_head(&mut self) -> io::Result<String> {
        use tokio::io::AsyncBufReadExt;
        let seen = self.fill_buf().await?;
        Ok(String::from_utf8_lossy(seen).into_owned())
    }
}

async fn stream(running: &Running, credential: &str) -> Raw {
    let mut connection = running.tls.connect(running.address).await;
    let request = format!("GET /events HTTP/1.1\r\nhost: {HOST}\r\n{credential}\r\n\r\n");
    connection.send(request.as_bytes()).await;
    assert!(connection.head().await.starts_with("HTTP/1.1 200"));
    connection.bytes(10).await;
    connection
}

async fn socket(running: &Running, credential: &str) -> Raw {
    let mut socket = sockets::open(running, credential, "").await;
    let answered = socket.head().await;
    assert!(answered.starts_with("HTTP/1.1 101"), "{answered}");
    socket
}

#[tokio::test]
async fn connections_end_with_the_thing_that_gave_the_right() {
    let server = Server::start(endless).await;
    let basic = format!("authorization: {BASIC}");
    type End = (&'static str, fn(&Running));
    let ends: [End; 9] = [
        ("sign-out", |running| running.sign_out("owner")),
        ("another owner", |running| {
            running.change(|page| page.owner = UserId(9))
        }),
        ("a deletion", |running| {
            drop(running.house.answers.lock().pages.remove("demo"))
        }),
        ("a stop", |running| {
            running.change(|page| page.state = PageState::Stopped)
        }),
        ("a start", |running| {
            running.change(|page| page.state = PageState::Starting)
        }),
        ("another name", |running| {
            running.change(|page| page.moved_to = Some("x".to_owned()))
        }),
        ("another incarnation", |running| {
            running.change(|page| match &mut page.state {
                PageState::Running(upstream) => upstream.incarnation += 1,
                _ => unreachable!(),
            });
        }),
        ("another credential", |running| {
            running.change(|page| match &mut page.state {
                PageState::Running(upstream) => upstream.credential = Some(SecretText::new("new")),
                _ => unreachable!(),
            });
        }),
        ("another password", |running| {
            running.house.answers.lock().has_other_password = true
        }),
    ];
    for (name, end) in ends {
        let running = Running::start(&server).await;
        let cookie = running.cookie("owner").await;
        let credential = if name == "another password" {
            &basic
        } else {
            &cookie
        };
        let mut stream = stream(&running, credential).await;
        let mut socket = socket(&running, credential).await;
        assert!(
            stream.is_open_for(Duration::from_millis(700)).await,
            "{name}"
        );
        assert!(
            socket.is_open_for(Duration::from_millis(100)).await,
            "{name}"
        );
        end(&running);
        let ended = Instant::now();
        stream.rest(BOUND).await;
        socket.rest(BOUND).await;
        assert!(ended.elapsed() < BOUND, "{name}");
    }
}

#[tokio::test]
async fn the_end_of_one_session_leaves_others() {
    let server = Server::start(endless).await;
    let running = Running::start(&server).await;
    running
        .house
        .answers
        .lock()
        .sessions
        .insert("second".to_owned(), UserId(1));
    let first = running.cookie("owner").await;
    let second = running.cookie("second").await;
    let mut ends = socket(&running, &first).await;
    let mut stays = socket(&running, &second).await;
    running.sign_out("owner");
    ends.rest(BOUND).await;
    assert!(stays.is_open_for(Duration::from_secs(1)).await);
    stays.send(b"still here").await;
    assert_eq!(stays.bytes(10).await, b"still here");
}

#[tokio::test]
async fn a_page_and_a_user_have_a_number_of_connections() {
    let server = Server::start(endless).await;
    for (connections_per_page, connections_per_user) in [(2, 100), (100, 2)] {
        let limits = PageLimits {
            connections_per_page,
            connections_per_user,
        };
        let running = Running::start_with(&server, limits).await;
        let cookie = running.cookie("owner").await;
        let _first = stream(&running, &cookie).await;
        let second = socket(&running, &cookie).await;
        let refused = running.ask("GET", "/", &[&cookie]).await;
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"),
            "{refused}"
        );
        drop(second);
        let freed = async {
            let request = format!("GET /events HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n");
            loop {
                let mut third = running.tls.connect(running.address).await;
                third.send(request.as_bytes()).await;
                if third.head().await.starts_with("HTTP/1.1 200") {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let freed = tokio::time::timeout(Duration::from_secs(20), freed);
        freed.await.unwrap();
    }
}

/// The server ends when it is told to, whatever is open.
#[tokio::test]
async fn a_stop_of_the_server_ends_sockets_at_once_and_requests_soon() {
    let server = Server::start(endless).await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut stream = stream(&running, &cookie).await;
    let mut socket = socket(&running, &cookie).await;
    drop(running);
    socket.rest(Duration::from_secs(1)).await;
    assert!(stream.is_open_for(Duration::from_secs(1)).await);
    stream.rest(Duration::from_secs(4)).await;
}

/// A session may end by idleness although a window is open.
#[tokio::test]
async fn a_connection_that_stays_open_is_no_use_of_its_session() {
    let server = Server::start(endless).await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let mut socket = socket(&running, &cookie).await;
    let uses = || running.house.uses.load(Ordering::Relaxed);
    let before = uses();
    assert!(before > 0 && socket.is_open_for(BOUND).await);
    assert_eq!(uses(), before);
}

/// The visitor does not read, so the answer of the page's WebSocket stays with the gateway.
#[tokio::test]
async fn a_socket_that_ends_before_its_answer_was_sent_counts_no_more() {
    let server = Server::start(endless).await;
    let limits = PageLimits {
        connections_per_page: 1,
        connections_per_user: 1,
    };
    let running = Running::start_with(&server, limits).await;
    let cookie = running.cookie("owner").await;
    let (mut visitor, io) = tokio::io::duplex(1);
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let accepted = AcceptedConnection {
        peer: [127, 0, 0, 1].into(),
        welcome: Box::new(|| {}),
        stopped,
    };
    let gateway = Arc::clone(&running.gateway);
    let served = tokio::spawn(async move { gateway.serve(io, accepted).await });
    visitor
        .write_all(sockets::request(&cookie, "").as_bytes())
        .await
        .unwrap();
    let is_answered = || {
        let reports = running.house.reports.lock();
        reports.iter().any(|report| report.contains("Some(101)"))
    };
    while !is_answered() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.sign_out("owner");
    served.await.unwrap();
    let again = stream(&running, &format!("authorization: {BASIC}")).await;
    drop((again, visitor));
}

/// A visitor without an account leaves the owner's connections to the owner.
#[tokio::test]
async fn the_visitors_of_a_public_page_shut_out_its_owner_from_no_page() {
    let server = Server::start(endless).await;
    for (connections_per_page, connections_per_user) in [(4, 100), (100, 3)] {
        let limits = PageLimits {
            connections_per_page,
            connections_per_user,
        };
        let running = Running::start_with(&server, limits).await;
        let cookie = running.cookie("owner").await;
        running.change(|page| page.is_public = true);
        let mut strangers = Vec::new();
        for _ in 0..3 {
            strangers.push(stream(&running, "accept: */*").await);
        }
        let refused = running.ask("GET", "/", &[]).await;
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        drop(stream(&running, &cookie).await);
    }
}
