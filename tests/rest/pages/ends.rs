//! The ends of connections to pages: each is closed within two seconds.

use super::{Visit, ask, page, signed_in, start};
use crate::sign_in::{ConsoleBrowser, PASSWORD};
use crate::{Expected, uuid};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::{Api, PageServer, Server};

/// The longest time of a connection whose right has ended.
const END: Duration = Duration::from_secs(2);

/// Two looks of the gateway at what is open.
const LOOKS: Duration = Duration::from_millis(1_100);

/// A stream of a page, and the parties to it.
struct Streaming {
    ann: Api,
    browser: ConsoleBrowser,
    instance: Value,
    stream: TcpStream,
}

impl Streaming {
    /// Reads on, and returns whether the stream goes on.
    fn goes_on(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 4096]), Ok(1..))
    }
}

/// Takes the right of a stream away.
type End = fn(&Server, &Streaming);

const ENDS: [(&str, End); 5] = [
    ("a sign-out", |_, of| {
        let path = "/auth/sign-out/";
        of.browser.send("POST", path, &Value::Null).is(204);
    }),
    ("a stop", |_, of| {
        of.ann.act(uuid(&of.instance), "stop").is(200);
    }),
    ("a deletion", |_, of| {
        of.ann.delete(uuid(&of.instance)).is(204);
    }),
    ("a rename", |_, of| {
        let path = format!("/api/instance/{}/", uuid(&of.instance));
        let name = json!({ "name": "other" });
        of.ann.send("PATCH", &path, &name).is(200);
    }),
    ("a disabled user", |server, _| {
        let disable = ["user", "disable", "ann@example.com"];
        server.cli(&disable).unwrap();
    }),
];

#[test]
fn each_end_of_a_right_ends_its_connections_and_no_others() {
    let (server, ann, ports) = start();
    let first = ports.from + (ports.to - ports.from).div_ceil(2);
    let _pages: Vec<_> = (first..=ports.to).map(PageServer::start).collect();
    // Another invitation would end the sessions before.
    drop(signed_in(&server, "ann@example.com"));
    let opened = ENDS.iter().enumerate().map(|(n, _)| {
        let instance = page(&ann, "marimo", &format!("demo-{n}"));
        let mut browser = ConsoleBrowser::new(&server);
        browser.sign_in(PASSWORD);
        let visit = Visit::begin(&browser, &instance);
        let mut stream = ask(visit.port, &visit.host, "/stream", &visit.headers());
        let mut begin = [0; 13];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 ");
        Streaming {
            ann: ann.clone(),
            browser,
            instance,
            stream,
        }
    });
    let mut all: Vec<_> = opened.collect();
    // They go on for as long as their rights do.
    let begun = Instant::now();
    while begun.elapsed() < LOOKS {
        assert!(all.iter_mut().all(Streaming::goes_on));
    }
    for (name, end) in ENDS {
        let mut ended = all.remove(0);
        let begun = Instant::now();
        end(&server, &ended);
        while ended.goes_on() {
            assert!(begun.elapsed() < END, "{name} leaves a stream open");
        }
        assert!(begun.elapsed() < END, "{name}");
        assert!(all.iter_mut().all(Streaming::goes_on), "{name} ends others");
    }
}
