//! Many requests on one connection, and many idle connections.

use super::wire::{connect, listen, resident_kib, send};
use crate::start;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::time::{Duration, Instant};

const IDLE: u64 = 5_000;

/// Maximum cost of an idle connection in KiB: a task, a socket and a read buffer.
const KIB_EACH: u64 = 24;

/// Returns the limit of open files for this process and its servers, after raising it to the
/// maximum.
fn files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[test]
fn five_thousand_idle_connections() {
    let files = files();
    if files < IDLE + 500 {
        println!("SKIPPED: only {files} files may be open, and {IDLE} connections need more");
        return;
    }
    let (server, api) = start();
    assert_eq!(api.get("/healthz").unwrap().status, 200);
    let process = server.process_id().unwrap();
    let before = resident_kib(process);
    let streams: Vec<_> = (0..IDLE).map(|_| connect(&server)).collect();
    let begin = Instant::now();
    assert!(api.list().unwrap().is_empty());
    let asked = begin.elapsed();
    let during = resident_kib(process);
    println!(
        "{IDLE} idle connections: {before} KiB before, {during} KiB with them, \
         {:.1} KiB each; a request meanwhile {asked:?}",
        during.saturating_sub(before) as f64 / IDLE as f64
    );
    assert!(
        during < before + IDLE * KIB_EACH,
        "{before} -> {during} KiB"
    );
    assert!(asked < Duration::from_secs(5), "{asked:?}");
    drop(streams);
    assert_eq!(api.get("/healthz").unwrap().status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (server, api) = start();
    let mut bytes = String::new();
    for n in 0..100 {
        let path = ["/healthz", "/nothing", "/api/instance/"][n % 3];
        let key = api.key();
        bytes.push_str(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: n-{n}\r\nAuthorization: Bearer {key}\r\n\r\n"
        ));
    }
    let heard = send(&server, bytes.as_bytes());
    let expected: Vec<u16> = (0..100).map(|n| [200, 404, 200][n % 3]).collect();
    assert_eq!(heard.statuses, expected);
    let text = heard.text().to_lowercase();
    let at: Vec<_> = (0..100)
        .map(|n| text.find(&format!("x-request-id: n-{n}\r\n")))
        .collect();
    assert!(at.is_sorted() && at[0].is_some());
}

#[test]
fn a_body_without_end_costs_no_memory() {
    let (server, api) = start();
    let process = server.process_id().unwrap();
    let before = resident_kib(process);
    let senders: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = connect(&server);
            let key = api.key().to_owned();
            std::thread::spawn(move || {
                let head = format!(
                    "POST /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
                     Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).unwrap();
                let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                // Sends until the server closes the connection, or far beyond its limit.
                for sent in 0..2000_u32 {
                    if stream.write_all(chunk.as_bytes()).is_err() {
                        return sent;
                    }
                }
                panic!("{:?}", listen(&mut stream, Duration::from_secs(1)).statuses)
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    let after = resident_kib(process);
    println!("20 bodies without end: {before} KiB before, {after} KiB after");
    assert!(after < before + 40 * 1024, "{before} -> {after} KiB");
}
