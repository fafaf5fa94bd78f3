//! Clients that take their time, one and many.

use super::impatient;
use super::wire::{connect, listen};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::Server;

/// Well above the server's own limits, well below a hang.
const BOUND: Duration = Duration::from_secs(10);

/// Sends the start, and then a byte now and then until the server has had enough; how long that
/// took, and what it said.
fn trickle(mut stream: TcpStream, start: &str, byte: &[u8]) -> (Duration, Vec<u16>) {
    let begin = Instant::now();
    stream.write_all(start.as_bytes()).unwrap();
    let mut statuses = Vec::new();
    while begin.elapsed() < BOUND {
        let heard = listen(&mut stream, Duration::from_millis(50));
        statuses.extend(heard.statuses);
        if heard.closed {
            break;
        }
        let _ = stream.write_all(byte);
    }
    (begin.elapsed(), statuses)
}

fn slow_body(server: &Server, key: &str, framing: &str, byte: &[u8]) {
    let head = format!(
        "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\n{framing}\r\n\r\n"
    );
    let (time, statuses) = trickle(connect(server), &head, byte);
    assert_eq!(statuses, [408], "{framing}");
    assert!(time < BOUND, "{framing}: {time:?}");
}

#[test]
fn slow_heads_and_bodies_end_in_time() {
    let (server, api) = impatient();
    for start in [
        "",
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ",
    ] {
        let (time, statuses) = trickle(connect(&server), start, b"y");
        assert!(time < BOUND, "{start:?}: {time:?}");
        assert!(statuses.iter().all(|s| *s < 500), "{start:?}: {statuses:?}");
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
fn many_slow_clients_keep_nobody_waiting() {
    let (server, api) = impatient();
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
            stream
        })
        .collect();
    let begin = Instant::now();
    assert_eq!(api.get("/healthz").unwrap().status, 200);
    assert!(api.list().unwrap().is_empty());
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    for mut stream in streams {
        let heard = listen(&mut stream, BOUND);
        assert!(
            heard.closed && heard.statuses.iter().all(|s| *s < 500),
            "{heard:?}"
        );
    }
    server.finish().unwrap();
}
