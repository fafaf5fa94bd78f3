//! `Idempotency-Key` on create.

use crate::{Expected, start, start_lasting, until_true, until_used, with};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use wharf_tests::{Answer, Api, Server, small};

fn create(api: &Api, key: &str, body: &Value) -> Answer {
    let headers = [("Idempotency-Key", key)];
    api.send_with("POST", "/api/instance/", &headers, body)
        .unwrap()
}

fn named(name: &str) -> Value {
    with("container", json!({ "name": name }))
}

/// Sends a create without reading the answer.
fn send(server: &Server, key: &str, idempotency_key: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/instance/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         idempotency-key: {idempotency_key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

#[test]
fn a_retry_after_kill_9_creates_nothing_twice() {
    let (mut server, mut api) = start_lasting("");
    for n in 0_u64..4 {
        let (key, body) = (format!("key-{n}"), small("container"));
        let unread = send(&server, api.key(), &key, &body);
        // In even rounds the server dies at some point of the request, in odd ones after the commit.
        let made = usize::try_from(n).unwrap() + 1;
        if n % 2 == 0 {
            (0..n / 2).for_each(|_| drop(api.get("/healthz")));
        } else {
            until_true("the instance is durable", || {
                api.list().unwrap().len() == made
            });
        }
        server.kill().unwrap();
        drop(unread);
        server.run().unwrap();
        api = server.again(&api);
        let before = api.list().unwrap();
        let retried = create(&api, &key, &body);
        assert_eq!(retried.status, 201, "{retried:?}");
        assert_eq!(api.list().unwrap().len(), made);
        if n % 2 == 1 {
            let last = before.last().unwrap();
            for field in ["uuid", "name", "original_service_password", "wan_ssh_port"] {
                assert_eq!(retried.body[field], last[field], "{field}");
            }
            assert_eq!(retried.body["state"], "provisioning", "the first answer");
        }
        let again = create(&api, &key, &body);
        assert_eq!((again.status, &again.body), (201, &retried.body));
    }
}

#[test]
fn a_replay_shows_the_password_after_a_rotation_of_the_key_of_secrets() {
    let (server, ann) = start();
    let first = create(&ann, "key", &named("one"));
    ann.wait_for("one", "running").unwrap();
    ann.delete("one").is(204);
    until_used(&ann, "n_instances", 0);
    server.cli(&["secrets", "rotate"]).unwrap();
    let again = create(&ann, "key", &named("one"));
    assert_eq!((again.status, &again.body), (201, &first.body));
}
