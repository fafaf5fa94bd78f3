//! The ends of connections to pages: each is closed within two seconds.

use super::{Visit, ask, page, serve, signed_in, start};
use crate::sign_in::ConsoleBrowser;
use crate::{Expected, uuid};
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Server};

/// The longest time of a connection whose right has ended.
const END: Duration = Duration::from_secs(2);

/// Two looks of the gateway at what is open.
const LOOKS: Duration = Duration::from_millis(1_100);

/// The parties of one stream.
struct Streaming {
    server: Server,
    ann: Api,
    browser: ConsoleBrowser,
    instance: Value,
}

/// Opens a stream of a page, lets `end` take its right away, and measures.
fn ends(name: &str, end: impl FnOnce(&Streaming)) {
    let (server, ann, ports) = start();
    let instance = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let browser = signed_in(&server, "ann@example.com");
    let visit = Visit::begin(&browser, &instance);
    let mut stream = ask(visit.port, &visit.host, "/stream", &visit.headers());
    let mut piece = [0; 4096];
    let read = stream.read(&mut piece).unwrap();
    assert!(piece[..read].starts_with(b"HTTP/1.1 200 "), "{name}");
    // It goes on for as long as its right does.
    let begun = Instant::now();
    while begun.elapsed() < LOOKS {
        assert!(stream.read(&mut piece).unwrap() > 0, "{name}");
    }
    let parties = Streaming {
        server,
        ann,
        browser,
        instance,
    };
    let begun = Instant::now();
    end(&parties);
    while matches!(stream.read(&mut piece), Ok(1..)) {
        assert!(begun.elapsed() < END, "{name} leaves a stream open");
    }
    assert!(begun.elapsed() < END, "{name}");
    parties.server.finish().unwrap();
}

#[test]
fn a_sign_out_ends_connections() {
    ends("a sign-out", |parties| {
        parties
            .browser
            .send("POST", "/auth/sign-out/", &Value::Null)
            .is(204);
    });
}

#[test]
fn a_disabled_user_loses_connections() {
    ends("a disabled user", |parties| {
        let disable = ["user", "disable", "ann@example.com"];
        parties.server.cli(&disable).unwrap();
    });
}

#[test]
fn a_stop_ends_connections() {
    ends("a stop", |parties| {
        parties.ann.act(uuid(&parties.instance), "stop").is(200);
    });
}

#[test]
fn a_deletion_ends_connections() {
    ends("a deletion", |parties| {
        parties.ann.delete(uuid(&parties.instance)).is(204);
    });
}

#[test]
fn a_rename_ends_connections_to_the_earlier_host() {
    ends("a rename", |parties| {
        let path = format!("/api/instance/{}/", uuid(&parties.instance));
        let renamed = parties
            .ann
            .send("PATCH", &path, &json!({ "name": "other" }));
        renamed.is(200);
    });
}
