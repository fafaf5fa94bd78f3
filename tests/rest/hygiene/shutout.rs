//! Clients that try to exhaust the service: none may prevent answers to others.

use super::http2::{PREFACE, SETTINGS, frame, head, read_frame};
use super::wire::{connect, listen};
use crate::{start, start_under, until_true, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Server, metric};

pub(super) fn start_limited(limits: &str) -> (Server, Api) {
    start_under(&format!("[limits]\n{limits}\n"), "")
}

/// Opens an HTTP/2 connection and sends these requests.
fn requests(server: &Server, count: u32, request: impl Fn(u32) -> Vec<u8>) -> TcpStream {
    connection(server, &frame(SETTINGS, 0, 0, &[]), count, request)
}

pub(super) fn connection(
    server: &Server,
    settings: &[u8],
    count: u32,
    request: impl Fn(u32) -> Vec<u8>,
) -> TcpStream {
    let mut stream = connect(server);
    let mut bytes = [PREFACE, settings].concat();
    for n in 0..count {
        bytes.extend(request(2 * n + 1));
    }
    stream.write_all(&bytes).unwrap();
    stream
}

/// Else a client that never reads could have the server store responses without end.
#[test]
fn a_connection_ends_after_an_unread_body() {
    let (server, _) = start();
    let request = "HEAD /api/instance/ HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx";
    let mut stream = connect(&server);
    let _ = stream.write_all(request.repeat(50).as_bytes());
    let heard = listen(&mut stream, Duration::from_secs(5));
    assert_eq!((heard.statuses, heard.closed), (vec![401], true));
}

#[test]
fn open_streams_do_not_block_health_checks() {
    let (server, api) = start();
    let streams: Vec<_> = (0..102)
        .map(|_| requests(&server, 100, |n| head(n, "GET", "/healthz", "", false)))
        .collect();
    until_true("the streams are open", || {
        metric(&api, "wharf_http_connections ").unwrap() >= 102.0
    });
    for _ in 0..29 {
        assert_eq!(api.get("/healthz").unwrap().status, 200);
    }
    assert_eq!(api.get("/readyz").unwrap().status, 200);
    assert!(api.list().unwrap().is_empty());
    drop(streams);
}

#[test]
fn endless_bodies_do_not_count_as_in_flight_and_unused_ones_are_not_read() {
    let (server, api) = start_limited("max_connections = 20");
    let begin = Instant::now();
    let waiting = requests(&server, 60, |n| {
        head(n, "POST", "/api/instance/", api.key(), false)
    });
    let mut ignored = requests(&server, 1, |n| {
        head(n, "POST", "/api/instance/a-b/stop/", api.key(), false)
    });
    // The answer to the second request does not wait for its unused body.
    while read_frame(&mut ignored).unwrap() != HEADERS {}
    assert!(api.list().unwrap().is_empty());
    // The bodies have 20 s.
    assert!(begin.elapsed() < Duration::from_secs(15));
    // A shutdown would wait for them.
    drop((waiting, ignored));
}

const HEADERS: u8 = 1;

#[test]
fn a_peer_has_a_bounded_number_of_connections() {
    let (server, api) = start_limited("max_connections = 9");
    let mut streams: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    let closed = |stream: &mut TcpStream| {
        let timeout = Duration::from_millis(200);
        stream.set_read_timeout(Some(timeout)).unwrap();
        !matches!(stream.read(&mut [0]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open = streams
        .iter_mut()
        .filter_map(|stream| (!closed(stream)).then_some(()));
    assert!((1..=8).contains(&open.count()));
    drop(streams);
    wait_until("the peer has a free connection again", || {
        Ok(api.get("/healthz").ok())
    });
}

/// Settings with an initial window of zero, so the server cannot send a body.
pub(super) fn no_window() -> Vec<u8> {
    const INITIAL_WINDOW_SIZE: u8 = 4;
    frame(SETTINGS, 0, 0, &[0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0])
}

#[test]
fn an_http2_client_that_reads_no_body_loses_its_connection() {
    let (server, api) = start_limited("write_timeout_ms = 1000");
    let mut stream = connection(&server, &no_window(), 1, |n| {
        head(n, "GET", "/api/instance/", api.key(), true)
    });
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let begin = Instant::now();
    // The client stays active otherwise.
    let ping = frame(6, 0, 0, &[0; 8]);
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                let _ = stream.write_all(&ping);
            }
            Err(_) => break,
            Ok(_) => {}
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[test]
fn unsent_responses_are_bounded_in_all() {
    let (server, api) = start_limited("unsent_mib = 1");
    let others: Vec<_> = (0..8)
        .map(|n| server.user(&format!("{n}@example.com")).unwrap())
        .inspect(|other| drop(other.small_container().unwrap()))
        .collect();
    // A list of an instance has about 900 bytes, a response costs 1 KiB more, and a user has 128 KiB.
    let unread: Vec<_> = others
        .iter()
        .flat_map(|other| {
            let list = |n| head(n, "GET", "/api/instance/", other.key(), true);
            [(); 6].map(|()| connection(&server, &no_window(), 100, list))
        })
        .collect();
    until_true("the limit of unsent bytes is reached", || {
        api.get("/api/instance/").unwrap().status == 503
    });
    assert_eq!(api.get("/healthz").unwrap().status, 200);
    drop(unread);
    until_true("the connections are closed", || {
        api.get("/api/instance/").unwrap().status == 200
    });
}
