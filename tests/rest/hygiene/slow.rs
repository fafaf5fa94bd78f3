//! Slow clients, one and many.

use super::start_with_short_timeouts;
use super::wire::{Answers, connect, listen};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::Server;

/// Far above the server's own limits, far below a hang.
const BOUND: Duration = Duration::from_secs(60);

/// Sends the start, and then one byte at a time until the server closes the connection. Returns the
/// duration and the answer.
fn trickle(mut stream: TcpStream, start: &str, byte: &[u8]) -> (Duration, Answers) {
    let begin = Instant::now();
    stream.write_all(start.as_bytes()).unwrap();
    let mut all = Answers::default();
    while begin.elapsed() < BOUND {
        all.add(listen(&mut stream, Duration::from_millis(50)));
        if all.closed {
            break;
        }
        let _ = stream.write_all(byte);
    }
    all.agrees_with(start.as_bytes());
    (begin.elapsed(), all)
}

fn slow_body(server: &Server, key: &str, framing: &str, byte: &[u8]) {
    let head = format!(
        "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\n{framing}\r\n\r\n"
    );
    let (time, heard) = trickle(connect(server), &head, byte);
    assert_eq!(heard.statuses, [408], "{framing}");
    assert!(time < BOUND, "{framing}: {time:?}");
}

#[test]
fn slow_heads_and_bodies_end_in_time() {
    let (server, api) = start_with_short_timeouts();
    for start in [
        "",
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ",
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nX: ",
    ] {
        let (time, heard) = trickle(connect(&server), start, b"y");
        assert!(time < BOUND, "{start:?}: {time:?}");
        assert!(
            heard.statuses.iter().all(|s| *s < 500),
            "{start:?}: {heard:?}"
        );
    }
    slow_body(&server, api.key(), "Content-Length: 1000", b"x");
    slow_body(
        &server,
        api.key(),
        "Transfer-Encoding: chunked",
        b"1\r\nx\r\n",
    );
    server.finish().unwrap();
}

#[test]
fn many_slow_clients_do_not_delay_others() {
    let (server, api) = start_with_short_timeouts();
    let streams: Vec<_> = (0..300)
        .map(|n| {
            let mut stream = connect(&server);
            let start = if n % 2 == 0 {
                "GET /healthz HT".to_owned()
            } else {
                format!(
                    "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
                     Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{{",
                    api.key()
                )
            };
            stream.write_all(start.as_bytes()).unwrap();
            (stream, start)
        })
        .collect();
    assert_eq!(api.get("/healthz").unwrap().status, 200);
    assert!(api.list().unwrap().is_empty());
    for (mut stream, start) in streams {
        let heard = listen(&mut stream, BOUND);
        heard.agrees_with(start.as_bytes());
        assert!(
            heard.closed && heard.statuses.iter().all(|s| *s < 500),
            "{heard:?}"
        );
    }
    server.finish().unwrap();
}
