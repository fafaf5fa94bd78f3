//! Streams of events.

use super::{Stream, page};
use crate::sign_in::ConsoleBrowser;
use crate::{
    Expected, running, start, start_under, start_with, time, until_logged, uuid, wait_until,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{Receiver, channel};
use ureq::http::{Request, Version};
use wharf_tests::{Api, Server};

#[test]
fn a_stream_begins_now_or_after_a_number_and_has_only_its_owners_events() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let first = running(&ann);
    let mut now = Stream::of(&server, &ann, "");
    let (mut all, mut others) = (
        Stream::of(&server, &ann, "?after=0"),
        Stream::of(&server, &bob, "?after=0"),
    );
    let mut of_first = Stream::of(&server, &ann, &format!("?instance={}", uuid(&first)));
    assert_eq!(
        (now.ready(), all.ready(), others.ready(), of_first.ready()),
        (2, 0, 0, 2)
    );
    running(&ann);
    ann.act(uuid(&first), "stop").is(200);
    bob.small_container().unwrap();
    let expected = page(&ann, "");
    assert!(expected.len() >= 6);
    for event in &expected {
        assert_eq!(all.event(), *event);
    }
    for event in &expected[2..] {
        assert_eq!(now.event(), *event);
    }
    assert_eq!(of_first.event()["type"], "stopped");
    let other = others.event();
    assert_eq!(other["id"], 1);
    assert_eq!(other["type"], "created");

    // `Last-Event-ID` replaces `after`.
    let mut again = Stream::open(server.base_url(), ann.key(), "?after=0", Some(3)).unwrap();
    assert_eq!(again.ready(), 3);
    assert_eq!(again.event(), expected[3]);
    for id in ["x", "-1", ""] {
        let wrong = [("Accept", "text/event-stream"), ("Last-Event-ID", id)];
        let refused = ann.send_with("GET", "/api/event/", &wrong, &serde_json::Value::Null);
        assert!(refused.is(400)["Last-Event-ID"].is_array(), "{id:?}");
    }
    drop((all, now, others, of_first, again));
}

#[test]
fn the_end_of_a_session_ends_its_streams_and_no_other() {
    let (server, ann) = start();
    let browser = ConsoleBrowser::accepted(&server, "ann@example.com");
    let credential = ("Cookie", browser.cookie.as_str());
    let query = browser.ticket("");
    let mut of_session = Stream::with(server.base_url(), credential, &query, None).unwrap();
    let mut of_key = Stream::of(&server, &ann, "");
    assert_eq!((of_session.ready(), of_key.ready()), (0, 0));
    let created = ann.small_container().unwrap();
    assert_eq!(of_session.event()["type"], "created");
    assert_eq!(of_key.event()["type"], "created");
    let sign_out = browser.send("POST", "/auth/sign-out/", &serde_json::Value::Null);
    sign_out.is(204);
    while let Some((kind, _, data)) = of_session.next() {
        assert_eq!((kind.as_str(), &data["type"]), ("event", &"ready".into()));
    }
    ann.delete(uuid(&created)).is(204);
    while of_key.event()["type"] != "deleted" {}
    drop(of_key);
}

/// The lists that the next message names.
fn changed(stream: &mut Stream) -> Vec<String> {
    let (kind, id, data) = stream.next().unwrap();
    assert_eq!((kind.as_str(), id), ("changed", 0), "{data}");
    let lists = data["lists"].as_array().unwrap().iter();
    lists
        .map(|list| list.as_str().unwrap().to_owned())
        .collect()
}

/// Waits until these lists have changed, which one message or several tell, and no others.
fn told(stream: &mut Stream, lists: &[&str]) {
    let mut told = BTreeSet::new();
    while told.len() < lists.len() {
        told.extend(changed(stream));
        assert!(
            told.iter().all(|list| lists.contains(&list.as_str())),
            "{told:?}"
        );
    }
}

#[test]
fn a_stream_names_other_lists_that_change() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let (mut plain, mut all) = (
        Stream::of(&server, &ann, ""),
        Stream::of(&server, &ann, "?changes=true"),
    );
    assert_eq!((plain.ready(), all.ready()), (0, 0));
    let post = |api: &Api, path: &str, body: Value| {
        let answer = api.send("POST", path, &body).unwrap();
        answer.is(201)
    };
    post(&bob, "/api/key/", json!({}));
    let key = post(&ann, "/api/key/", json!({}));
    told(&mut all, &["audit", "keys"]);
    let path = format!("/api/key/{}/", key["id"].as_str().unwrap());
    ann.send("DELETE", &path, &Value::Null).is(204);
    told(&mut all, &["audit", "keys"]);
    let hook = json!({ "url": "https://receiver.invalid/", "types": ["purged"] });
    let hook = post(&ann, "/api/webhook/", hook);
    told(&mut all, &["audit", "webhooks"]);
    let path = format!("/api/webhook/{}/test/", hook["id"].as_str().unwrap());
    ann.send("POST", &path, &Value::Null).is(202);
    told(&mut all, &["audit", "webhooks"]);
    // Only a stream that asks for them has them.
    ann.small_container().unwrap();
    assert_eq!(plain.event()["type"], "created");
    drop((plain, all));
}

#[test]
fn the_last_message_of_a_stream_has_the_reason_of_its_end() {
    let (server, ann) = start();
    let follow = |expires_at: Value| {
        let body = json!({ "expires_at": expires_at });
        let key = ann.send("POST", "/api/key/", &body).is(201);
        let secret = key["key"].as_str().unwrap();
        let mut stream = Stream::open(server.base_url(), secret, "?changes=true", None).unwrap();
        stream.ready();
        (key["id"].as_str().unwrap().to_owned(), stream)
    };
    let end = |stream: &mut Stream| loop {
        let (kind, id, data) = stream.next().unwrap();
        if kind == "end" {
            assert_eq!(id, 0);
            assert!(stream.next().is_none());
            return data["reason"].as_str().unwrap().to_owned();
        }
        assert_eq!(kind, "changed");
    };
    let (id, mut revoked) = follow(Value::Null);
    let mut kept = Stream::of(&server, &ann, "");
    kept.ready();
    server.cli(&["key", "revoke", &id]).unwrap();
    let begun = Instant::now();
    assert_eq!(end(&mut revoked), "ended");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    ann.small_container().unwrap();
    assert_eq!(kept.event()["type"], "created");
    let (_, mut expired) = follow(time("2 seconds").into());
    assert_eq!(end(&mut expired), "expired");
    let (_, mut disabled) = follow(Value::Null);
    server.cli(&["user", "disable", "ann@example.com"]).unwrap();
    assert_eq!(end(&mut disabled), "disabled");
}

/// A stream ends within this time. Requests in progress at a shutdown get 20 seconds.
const SOON: Duration = Duration::from_secs(15);

#[test]
fn a_stop_of_the_server_ends_streams() {
    let (mut server, ann) = start();
    let mut kept = Stream::of(&server, &ann, "");
    assert_eq!(kept.ready(), 0);
    let begun = Instant::now();
    assert!(server.terminate().unwrap().success());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    while kept.next().is_some() {}
    server.run().unwrap();
}

#[test]
fn streams_of_one_user_are_bounded_and_hold_no_place_of_requests() {
    let limits = "[limits]\nevent_streams_per_user = 5\nmax_connections = 8\n";
    let (server, ann) = start_under(limits, "");
    let mut streams: Vec<_> = (0..5).map(|_| Stream::of(&server, &ann, "")).collect();
    for stream in &mut streams {
        stream.ready();
    }
    let accept = [("Accept", "text/event-stream")];
    let null = serde_json::Value::Null;
    let refused = ann.send_with("GET", "/api/event/", &accept, &null).unwrap();
    assert_eq!(refused.header("retry-after"), Some("1"));
    let text = refused.is(429)["detail"].to_string();
    assert!(text.contains("5 open event streams"), "{text}");
    assert_eq!(page(&ann, ""), Vec::<serde_json::Value>::new());
    drop(streams);
    wait_until("the places are free", || {
        Ok(Stream::open(server.base_url(), ann.key(), "", None)
            .ok()
            .map(drop))
    });
}

/// Bytes that the client grants which does not read.
const WINDOW: u32 = 4096;
/// Events of many times that size.
const RENAMES: usize = 100;

#[test]
fn a_client_that_does_not_read_is_ended_and_others_go_on() {
    let (server, ann) = start_under("[limits]\nwrite_timeout_ms = 2000\n", "");
    let created = running(&ann);
    let mut healthy = Stream::of(&server, &ann, "");
    let began = healthy.ready();
    let (over, until_over) = channel();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| read_only_at_the_end(&server, &ann, until_over));
        for n in 0..RENAMES {
            let name = format!("renamed-{n}-{}", "x".repeat(40));
            ann.patch(uuid(&created), &serde_json::json!({ "name": name }))
                .is(200);
            assert_eq!(healthy.event()["name"], name);
        }
        until_logged(&server, "its client does not read");
        over.send(()).unwrap();
        // The bytes that were on their way, and no end of the stream.
        let (bytes, ended) = slow.join().unwrap();
        assert!(bytes > 0 && bytes <= WINDOW as usize, "{bytes}");
        assert!(!ended);
    });
    assert_eq!(
        page(&ann, &format!("?after={began}&limit=1000")).len(),
        RENAMES
    );
}

/// Opens a stream over HTTP/2 and grants it no more than a small window. Returns the bytes that
/// came, and whether the stream had an end.
fn read_only_at_the_end(server: &Server, api: &Api, over: Receiver<()>) -> (usize, bool) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let address = server.base_url().strip_prefix("http://").unwrap();
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .handshake::<_, &[u8]>(socket)
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("http://{address}/api/event/?after=0"))
            .version(Version::HTTP_2)
            .header("authorization", format!("Bearer {}", api.key()))
            .header("accept", "text/event-stream");
        let mut client = client.ready().await.unwrap();
        let (answer, _) = client
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        let mut body = answer.await.unwrap().into_body();
        over.await.unwrap();
        let mut bytes = 0;
        loop {
            match body.data().await {
                Some(Ok(piece)) => bytes += piece.len(),
                Some(Err(_)) => return (bytes, false),
                None => return (bytes, true),
            }
        }
    })
}

#[test]
fn a_quiet_stream_has_a_heartbeat() {
    let (server, ann) = start_with("");
    let mut stream = Stream::of(&server, &ann, "");
    stream.ready();
    let begun = Instant::now();
    let beat = stream.lines.next().unwrap().unwrap();
    assert_eq!(beat, ": heartbeat");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    drop(stream);
}
