//! Slow clients, all at once: the server gives a head 10 s and a body 20 s.

use super::wire::{Answers, connect, listen};
use crate::start_under;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

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

#[test]
fn slow_clients_end_in_time_and_delay_no_others() {
    let (server, api) = start_under("[limits]\nidle_timeout_ms = 500\n", "");
    let post = |rest: &str| {
        let key = api.key();
        format!(
            "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{rest}"
        )
    };
    let get = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
    let clients = [
        (String::new(), "y", None),
        ("GET /healthz HTTP/1.1\r\n".to_owned(), "y", None),
        (format!("{get}X: "), "y", None),
        (format!("{get}\r\n{get}X: "), "y", None),
        (post("Content-Length: 1000\r\n\r\n"), "x", Some(408)),
        (
            post("Transfer-Encoding: chunked\r\n\r\n"),
            "1\r\nx\r\n",
            Some(408),
        ),
    ];
    std::thread::scope(|scope| {
        for (start, byte, status) in &clients {
            let stream = connect(&server);
            scope.spawn(move || {
                let (time, heard) = trickle(stream, start, byte.as_bytes());
                assert!(time < BOUND, "{start:?}: {time:?}");
                match status {
                    Some(status) => assert_eq!(heard.statuses, [*status], "{start:?}"),
                    None => assert!(
                        heard.statuses.iter().all(|s| *s < 500),
                        "{start:?}: {heard:?}"
                    ),
                }
            });
        }
        let silent: Vec<_> = (0..300)
            .map(|n| {
                let mut stream = connect(&server);
                let start = match n % 2 {
                    0 => "GET /healthz HT".to_owned(),
                    _ => post("Content-Length: 60000\r\n\r\n{"),
                };
                stream.write_all(start.as_bytes()).unwrap();
                (stream, start)
            })
            .collect();
        assert_eq!(api.get("/healthz").unwrap().status, 200);
        assert!(api.list().unwrap().is_empty());
        for (mut stream, start) in silent {
            let heard = listen(&mut stream, BOUND);
            heard.agrees_with(start.as_bytes());
            assert!(
                heard.closed && heard.statuses.iter().all(|s| *s < 500),
                "{heard:?}"
            );
        }
    });
}
