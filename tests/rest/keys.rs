//! `wharf key`, with and without a running server.

use crate::{Expected, start, stores_none};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use wharf_tests::{Api, small};

#[test]
fn keys_are_made_listed_and_revoked_while_the_server_runs() {
    let (server, api) = start();
    let second = server
        .cli(&["key", "new", "ann@example.com", "--name", "laptop"])
        .unwrap();
    assert_eq!(
        second.lines().count(),
        1,
        "stdout must contain only the key"
    );
    let second = second.trim();
    assert!(second.starts_with("wharf_"));
    let laptop = Api::new(server.base_url(), second);
    api.small_container().unwrap();
    assert_eq!(
        laptop.list().unwrap().len(),
        1,
        "both keys belong to one user"
    );

    let list = server.cli(&["key", "list"]).unwrap();
    assert_eq!(list.lines().count(), 2);
    assert!(!list.contains(second));
    let id = list
        .lines()
        .find(|l| l.contains("laptop"))
        .unwrap()
        .split('\t')
        .next()
        .unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    assert_eq!(laptop.get("/api/instance/").unwrap().status, 401);
    assert_eq!(api.list().unwrap().len(), 1);
    assert!(server.cli(&["key", "revoke", "0123456789abcdef"]).is_err());
    assert!(server.cli(&["key", "new", "not an address"]).is_err());
}

#[test]
fn keys_are_made_while_the_server_does_not_run_and_survive_restarts() {
    let (mut server, api) = start();
    server.terminate().unwrap();
    let offline = server.cli(&["key", "new", "bob@example.com"]).unwrap();
    let list = server.cli(&["key", "list"]).unwrap();
    let id = list
        .lines()
        .find(|l| l.contains("ann@"))
        .unwrap()
        .split('\t')
        .next()
        .unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    server.run().unwrap();
    assert_eq!(
        server.again(&api).get("/api/instance/").unwrap().status,
        401
    );
    let bob = Api::new(server.base_url(), offline.trim());
    assert!(bob.list().unwrap().is_empty());
    stores_none(&server, &[offline.trim()]);
}

/// The line of `wharf key list` of a key with this name.
fn listed(server: &wharf_tests::Server, name: &str) -> Vec<String> {
    let list = server.cli(&["key", "list"]).unwrap();
    let line = list.lines().find(|line| line.contains(name)).unwrap();
    line.split('\t').map(str::to_owned).collect()
}

#[test]
fn a_key_has_scopes_an_expiry_and_a_last_use() {
    let (mut server, ann) = start();
    let new = |name: &str, more: &[&str]| {
        let args = [&["key", "new", "ann@example.com", "--name", name], more].concat();
        let key = server.cli(&args).unwrap();
        Api::new(server.base_url(), key.trim())
    };
    let reader = new("reader", &["--scope", "read"]);
    let writer = new("writer", &["--scope", "write", "--expires", "2099-01-01"]);
    let refused = writer.get("/api/instance/").is(403);
    assert_eq!(refused["detail"], "This API key lacks the scope `read`.");
    writer.create(&small("container")).is(201);
    // The scope is checked before the path and the body.
    assert_eq!(reader.act("nothing", "stop").unwrap().status, 403);
    let used = listed(&server, "writer");
    assert_eq!(
        &used[5..7],
        ["write", "2099-01-01T00:00:00.000Z"],
        "{used:?}"
    );
    assert!(used[7].ends_with('Z'));
    let never = new("unused", &[]);
    assert_eq!(
        &listed(&server, "unused")[5..8],
        ["read,write,metrics", "-", "-"]
    );
    drop(never);
    for wrong in [
        &["--scope", "admin"][..],
        &["--expires", "2001-01-01"],
        &["--expires", "x"],
    ] {
        let args = [&["key", "new", "ann@example.com"], wrong].concat();
        assert!(server.cli(&args).is_err(), "{wrong:?}");
    }
    // The last use survives, though it is not written with the request.
    server.terminate().unwrap();
    assert_eq!(listed(&server, "writer")[7], used[7]);
    server.run().unwrap();
    assert_eq!(server.again(&ann).list().unwrap().len(), 1);
}

#[test]
fn a_user_has_at_most_100_keys_also_when_they_are_made_at_once() {
    let (_server, ann) = start();
    let make = |_| {
        let made = ann.send("POST", "/api/key/", &json!({})).unwrap();
        made.status
    };
    for n in 0..84 {
        assert_eq!(make(n), 201);
    }
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32).map(|n| scope.spawn(move || make(n))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let made = statuses.iter().filter(|status| **status == 201).count();
    assert_eq!(made, 15, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 17);
    let list = ann.get("/api/key/").is(200);
    assert_eq!(list.as_array().unwrap().len(), 100);
}

#[test]
fn a_key_that_is_revoked_during_its_request_makes_no_other_key() {
    let (server, ann) = start();
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let (key, body) = (ann.key(), r#"{ "name": "late" }"#);
    write!(
        stream,
        "POST /api/key/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\
         Expect: 100-continue\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .unwrap();
    // The server asks for the body once it knows the caller.
    let mut asked = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut asked).unwrap();
    let id = key.split('_').nth(1).unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let list = server.cli(&["key", "list"]).unwrap();
    assert_eq!(list.lines().count(), 1, "{list}");
}
