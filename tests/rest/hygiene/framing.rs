//! Boundaries between requests, and ambiguous headers.

use super::wire::{Answers, send};
use crate::start;

/// Follows a request with an ambiguous length. An answer to it reveals request smuggling.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";

/// Ambiguous continuations of the head of `POST /api/instance/`, with their names.
const AMBIGUOUS: &[(&str, &str)] = &[
    (
        "CL, TE",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "TE, CL",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    (
        "TE, long CL",
        "Transfer-Encoding: chunked\r\nContent-Length: 50\r\n\r\n0\r\n\r\n",
    ),
    (
        "two CL",
        "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
    ),
    ("a list of CL", "Content-Length: 2, 2\r\n\r\n{}"),
    ("CL with a sign", "Content-Length: +2\r\n\r\n{}"),
    ("negative CL", "Content-Length: -2\r\n\r\n{}"),
    ("hexadecimal CL", "Content-Length: 0x2\r\n\r\n{}"),
    (
        "CL too large",
        "Content-Length: 99999999999999999999\r\n\r\n{}",
    ),
    ("unknown TE", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    (
        "chunked not last",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ),
    (
        "space before the colon",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ),
    ("folded", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    (
        "vertical tab",
        "Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n",
    ),
    ("bare CR", "X: a\rContent-Length: 2\r\n\r\n{}"),
    ("NUL", "X: a\0b\r\nContent-Length: 2\r\n\r\n{}"),
    (
        "chunk size",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "chunk overflow",
        "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "chunks without CR",
        "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
    ),
];

/// Valid but unusual continuations. The next request begins after the body.
const PLAIN: &[(&str, &str)] = &[
    (
        "the same CL twice",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    ),
    (
        "chunk extension",
        "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "trailers",
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
    ),
];

fn sane(name: &str, heard: &Answers) {
    let wrong = heard.statuses.iter().any(|status| *status >= 500);
    assert!(!wrong, "{name}: {heard:?}");
    assert!(
        !heard.statuses.is_empty() || heard.closed,
        "{name}: {heard:?}"
    );
}

#[test]
fn a_body_of_ambiguous_length_is_400_and_ends_the_connection() {
    let (server, api) = start();
    let head = format!(
        "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n",
        api.key()
    );
    for (name, rest) in AMBIGUOUS {
        let heard = send(&server, format!("{head}{rest}{HIDDEN}").as_bytes());
        sane(name, &heard);
        assert_eq!(heard.statuses, [400], "{name}: {heard:?}");
        assert!(heard.closed, "{name}: {heard:?}");
    }
    for (name, rest) in PLAIN {
        let heard = send(&server, format!("{head}{rest}{HIDDEN}").as_bytes());
        assert_eq!(heard.statuses, [400, 404], "{name}: {heard:?}");
    }
    // The body of a GET is not a request.
    let get = format!(
        "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        HIDDEN.len()
    );
    assert_eq!(
        send(&server, format!("{get}{HIDDEN}").as_bytes()).statuses,
        [200]
    );
    let old = "POST /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(
        send(&server, format!("{old}{HIDDEN}").as_bytes()).statuses,
        [400]
    );
    assert!(api.list().unwrap().is_empty());
}

#[test]
fn invalid_requests_are_refused() {
    let (server, _) = start();
    let many: String = (0..65).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = "y".repeat(70_000);
    for (name, bytes, expected) in [
        (
            "many headers",
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
            Some(431),
        ),
        (
            "a large header",
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"),
            Some(431),
        ),
        (
            "a long target",
            format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
            None,
        ),
        (
            "two hosts",
            "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_owned(),
            Some(400),
        ),
        (
            "the URI of another host",
            "GET http://y/healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            Some(200),
        ),
        ("HTTP/0.9", "GET /healthz\r\n\r\n".to_owned(), Some(400)),
        (
            "HTTP/3.0",
            "GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n".to_owned(),
            Some(400),
        ),
        (
            "TLS",
            format!("\u{16}\u{3}\u{1}{}", "\0".repeat(300)),
            Some(400),
        ),
        ("SSH", "SSH-2.0-OpenSSH_9.2p1\r\n\r\n".to_owned(), Some(400)),
        (
            "CONNECT",
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n".to_owned(),
            Some(404),
        ),
        (
            "OPTIONS *",
            "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            Some(404),
        ),
        (
            "TRACE",
            "TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
            Some(405),
        ),
        (
            "another protocol",
            "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                .to_owned(),
            Some(200),
        ),
    ] {
        let heard = send(&server, bytes.as_bytes());
        sane(name, &heard);
        if let Some(status) = expected {
            assert_eq!(heard.statuses, [status], "{name}");
        }
    }
}

#[test]
fn expect_100_continue_gets_it_or_the_refusal() {
    let (server, api) = start();
    let head = "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                Expect: 100-continue\r\nContent-Length: 2\r\n";
    let key = format!("Authorization: Bearer {}\r\n", api.key());
    assert_eq!(
        send(&server, format!("{head}{key}\r\n").as_bytes()).statuses,
        [100]
    );
    assert_eq!(
        send(&server, format!("{head}{key}\r\n{{}}").as_bytes()).statuses,
        [100, 400]
    );
    let refused = send(&server, format!("{head}\r\n").as_bytes());
    assert_eq!(
        (refused.statuses.as_slice(), refused.closed),
        (&[401][..], true)
    );
}
