//! The ends of connections of visitors: with their share, and with either user.

use super::shares::{Inside, at, inside, share, shares};
use super::{Visit, ask, signed_in};
use crate::{Expected, time};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest time of a connection whose right has ended.
const END: Duration = Duration::from_secs(2);

/// Two looks of the gateway at what is open.
const LOOKS: Duration = Duration::from_millis(1_100);

/// Takes the right of a visitor away, or that of the owner to have visitors.
type End = fn(&Inside, &str);

fn change(one: &Inside, method: &str, body: &Value) {
    let path = format!("{}{}/", shares(&one.instance), one.port);
    let answer = one.ann.send(method, &path, body).unwrap();
    assert!([200, 204].contains(&answer.status), "{answer:?}");
}

const OWNER: &str = "ann@example.com";
const VISITOR: &str = "bob@example.com";

#[test]
fn each_end_of_a_right_ends_a_web_socket() {
    let suspend: End = |one, user| {
        let suspend = ["suspend", "--user", user, "--reason", "x"];
        one.server.cli(&suspend).unwrap();
    };
    let disable: End = |one, user| {
        one.server.cli(&["user", "disable", user]).unwrap();
    };
    let withdraw: End = |one, _| change(one, "DELETE", &Value::Null);
    let replace: End = |one, _| {
        let body = json!({ "access": "users", "users": ["carol@example.com"] });
        change(one, "PATCH", &body);
    };
    let expire: End = |one, _| {
        let body = json!({ "expires_at": time("+0.500 seconds") });
        change(one, "PATCH", &body);
    };
    let one = inside("");
    for (name, end, user) in [
        ("a withdrawal", withdraw, VISITOR),
        ("a change", replace, VISITOR),
        ("the end of the share", expire, VISITOR),
        ("a disabled visitor", disable, VISITOR),
        ("a disabled owner", disable, OWNER),
        ("a suspended visitor", suspend, VISITOR),
        ("a suspended owner", suspend, OWNER),
    ] {
        let body = json!({ "port": one.port, "access": "users", "users": [VISITOR] });
        let shared = share(&one.ann, &one.instance, &body).is(201);
        let visit = Visit::begin(&signed_in(&one.server, VISITOR), &at(&shared));
        let mut socket = socket(&visit);
        let begun = Instant::now();
        end(&one, user);
        assert!(matches!(socket.read(&mut [0; 64]), Ok(0)), "{name}");
        assert!(begun.elapsed() < END, "{name}: {:?}", begun.elapsed());
        assert_eq!(visit.get("/").status, 303, "{name}");
        // The next case begins with all rights, and without a share.
        for undo in [["user", "enable", user], ["resume", "--user", user]] {
            drop(one.server.cli(&undo));
        }
        let path = format!("{}{}/", shares(&one.instance), one.port);
        drop(one.ann.send("DELETE", &path, &Value::Null));
    }
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
