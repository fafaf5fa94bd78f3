//! The ends of connections of visitors: with their share, and with either user.

use super::shares::{Inside, at, inside, share, shares};
use super::{Visit, ask, signed_in};
use crate::Expected;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest time of a connection whose right has ended.
const END: Duration = Duration::from_secs(2);

/// Two looks of the gateway at what is open.
const LOOKS: Duration = Duration::from_millis(1_100);

/// Opens a WebSocket of a visitor, lets `end` take the right away, and measures.
fn ends(name: &str, end: impl FnOnce(&Inside)) {
    let one = inside("");
    let body = json!({ "port": one.port, "access": "users", "users": ["bob@example.com"] });
    let shared = share(&one.ann, &one.instance, &body).is(201);
    let bob = signed_in(&one.server, "bob@example.com");
    let visit = Visit::begin(&bob, &at(&shared));
    let mut socket = socket(&visit);
    let begun = Instant::now();
    end(&one);
    assert!(matches!(socket.read(&mut [0; 64]), Ok(0)), "{name}");
    assert!(begun.elapsed() < END, "{name}: {:?}", begun.elapsed());
    assert_eq!(visit.get("/").status, 303, "{name}");
    one.server.finish().unwrap();
}

/// A WebSocket of a visitor that stays open.
fn socket(visit: &Visit) -> TcpStream {
    let upgrade = format!(
        "Sec-Fetch-Site: same-origin\r\nOrigin: http://{}:{}\r\nCookie: {}\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nConnection: Upgrade\r\n",
        visit.host, visit.port, visit.cookie
    );
    let mut socket = ask(visit.port, &visit.host, "/ws", &upgrade);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101 "),
        "{}",
        String::from_utf8_lossy(&head)
    );
    // It stays while the right does.
    socket.set_read_timeout(Some(LOOKS)).unwrap();
    assert!(socket.read(&mut [0; 64]).is_err());
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

#[test]
fn a_withdrawal_ends_a_web_socket() {
    ends("a withdrawal", |one| {
        let path = format!("{}{}/", shares(&one.instance), one.port);
        one.ann.send("DELETE", &path, &Value::Null).is(204);
    });
}

#[test]
fn a_change_ends_a_web_socket_of_a_visitor_who_loses_the_right() {
    ends("a change", |one| {
        let path = format!("{}{}/", shares(&one.instance), one.port);
        let body = json!({ "access": "users", "users": ["carol@example.com"] });
        one.ann.send("PATCH", &path, &body).is(200);
    });
}

#[test]
fn the_end_of_a_share_ends_a_web_socket() {
    ends("the end", |one| {
        let path = format!("{}{}/", shares(&one.instance), one.port);
        let body = json!({ "expires_at": in_ms(500) });
        one.ann.send("PATCH", &path, &body).is(200);
    });
}

#[test]
fn the_suspension_of_the_owner_or_the_visitor_ends_a_web_socket() {
    for user in ["ann@example.com", "bob@example.com"] {
        ends(user, |one| {
            one.server
                .cli(&["suspend", "--user", user, "--reason", "x"])
                .unwrap();
        });
    }
}

#[test]
fn a_disabled_owner_or_visitor_ends_a_web_socket() {
    for user in ["ann@example.com", "bob@example.com"] {
        ends(user, |one| {
            one.server.cli(&["user", "disable", user]).unwrap();
        });
    }
}

/// A time in the future, as requests have it.
fn in_ms(ms: u64) -> String {
    let at = format!("+{}.{:03} seconds", ms / 1000, ms % 1000);
    let mut date = Command::new("date");
    date.args(["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%S.%3NZ"]);
    let output = date.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
