//! Memory that clients make the server hold: bodies that do not end, and responses that nobody reads. Each
//! party has a share of it, and is refused alone.

use super::http2::{head, read_frame};
use super::shutout::{connection, no_window, start_limited};
use super::wire::{Answers, connect, listen, resident_kib, send};
use crate::{Expected, has, start_under};
use h2::SendStream;
use h2::client::SendRequest;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use ureq::http::{Request, Version};
use wharf_tests::{Api, Server};

/// The time in which all responses of a refusal have arrived.
const QUIET: Duration = Duration::from_secs(2);

/// The longest part of a body.
static PART: [u8; 60_000] = [b' '; 60_000];

/// Requests whose bodies do not end.
struct Unfinished {
    runtime: Runtime,
    _bodies: Vec<SendStream<&'static [u8]>>,
    /// The number of responses of each status.
    statuses: BTreeMap<u16, usize>,
}

impl Unfinished {
    /// Opens connections and sends 100 requests on each, with a part of a body.
    fn send(
        server: &Server,
        connections: usize,
        path: &str,
        key: Option<&str>,
        part: usize,
    ) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        let (bodies, statuses) = runtime.block_on(unfinished(server, connections, path, key, part));
        Self {
            runtime,
            _bodies: bodies,
            statuses,
        }
    }

    fn end(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

async fn unfinished(
    server: &Server,
    connections: usize,
    path: &str,
    key: Option<&str>,
    part: usize,
) -> (Vec<SendStream<&'static [u8]>>, BTreeMap<u16, usize>) {
    let address = server.base_url().strip_prefix("http://").unwrap();
    let (mut bodies, mut responses) = (Vec::new(), JoinSet::new());
    for _ in 0..connections {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::Builder::new().handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..100 {
            let mut request = Request::post(format!("http://{address}{path}"))
                .version(Version::HTTP_2)
                .header("content-type", "application/json");
            if let Some(key) = key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            client = client.ready().await.unwrap();
            let (response, mut body) = client
                .send_request(request.body(()).unwrap(), false)
                .unwrap();
            // A refused stream is reset.
            let _ = body.send_data(&PART[..part], false);
            bodies.push(body);
            responses.spawn(async move { Some(response.await.ok()?.status().as_u16()) });
        }
    }
    let mut statuses = BTreeMap::new();
    while let Ok(Some(status)) = timeout(QUIET, responses.join_next()).await {
        if let Some(status) = status.unwrap() {
            *statuses.entry(status).or_default() += 1;
        }
    }
    (bodies, statuses)
}

#[test]
fn unfinished_bodies_of_strangers_are_bounded_and_refuse_no_other_network() {
    /// A network has 2 MiB by default. The rest is what tasks and connections cost.
    const GROWTH_KIB: u64 = 40 * 1024;
    let (server, api) = start_under("trusted_proxies = [\"127.0.0.1\"]\n", "");
    let process = server.process_id().unwrap();
    let before = resident_kib(process);
    let path = "/auth/device/token/";
    let unfinished = Unfinished::send(&server, 50, path, None, 15_000);
    let after = resident_kib(process);
    println!(
        "{:?}, {before} KiB before, {after} KiB after",
        unfinished.statuses
    );
    assert!(after < before + GROWTH_KIB, "{before} -> {after} KiB");
    let refused = unfinished.statuses.get(&503).copied().unwrap_or_default();
    assert!(refused > 4_500, "{:?}", unfinished.statuses);
    let from = |client: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
        let rest = format!("X-Forwarded-For: {client}\r\nContent-Length: 2\r\n\r\n{{}}");
        send(&server, format!("{head}{rest}").as_bytes()).statuses
    };
    assert_eq!(from("192.0.2.7"), [400]);
    api.send("POST", "/api/instance/", &crate::small("container"))
        .is(201);
    unfinished.end();
}

#[test]
fn unfinished_bodies_of_one_user_refuse_no_other() {
    let (server, ann) = start_limited("bodies_mib = 8");
    let bob = server.user("bob@example.com").unwrap();
    let path = "/api/instance/";
    let unfinished = Unfinished::send(&server, 2, path, Some(ann.key()), 60_000);
    assert!(unfinished.statuses[&503] > 150, "{:?}", unfinished.statuses);
    // Refused requests give their memory back, which may leave room for a small one.
    let mut more = Vec::new();
    while ann.send("POST", path, &json!({})).unwrap().status != 503 {
        assert!(more.len() < 10, "the share of a user has no end");
        more.push(Unfinished::send(&server, 1, path, Some(ann.key()), 100));
    }
    bob.send("POST", path, &crate::small("container")).is(201);
    // A request without a body needs no share.
    assert!(ann.list().unwrap().is_empty());
    more.into_iter().for_each(Unfinished::end);
    unfinished.end();
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn a_body_under_auth_has_at_most_16_kib_and_none_is_compressed() {
    let (server, api) = start_limited("");
    let of = |bytes: usize| {
        let body = json!({ "code": "x".repeat(bytes) }).to_string();
        send(&server, &post("/auth/device/token/", "", body.as_bytes()))
    };
    assert_eq!(of(16_000).statuses, [400]);
    let refused = of(17_000);
    assert_eq!(refused.statuses, [413]);
    has(refused.text(), "16 KiB");
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Encoding: gzip\r\n",
        api.key()
    );
    let heard = send(&server, &post("/api/instance/", &headers, b"\x1f\x8b"));
    assert_eq!(heard.statuses, [415]);
    let text = heard.text();
    has(&text, "uncompressed, without Content-Encoding");
    has(text.to_lowercase(), "accept-encoding: identity");
}

#[test]
fn a_rate_without_attempts_left_is_told_before_the_body() {
    let (server, _) = start_limited("");
    let head = "POST /auth/invite/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    let refused = (0..1_000).any(|_| {
        let whole = format!("{head}Content-Length: 2\r\n\r\n{{}}");
        send_fast(&server, whole.as_bytes()).statuses == [429]
    });
    assert!(refused);
    let begun = format!("{head}Content-Length: 1000\r\n\r\n{{");
    let begin = Instant::now();
    assert_eq!(send(&server, begun.as_bytes()).statuses, [429]);
    // The body has 20 s.
    assert!(begin.elapsed() < Duration::from_secs(15));
}

/// Sends a request on a connection that ends with its response.
fn send_fast(server: &Server, bytes: &[u8]) -> Answers {
    let mut stream = connect(server);
    let text = String::from_utf8_lossy(bytes).replacen(
        "Host: x\r\n",
        "Host: x\r\nConnection: close\r\n",
        1,
    );
    stream.write_all(text.as_bytes()).unwrap();
    listen(&mut stream, Duration::from_secs(10))
}

/// Creates instances, so that a list has about 3.5 KB.
fn four(api: &Api) {
    for _ in 0..4 {
        api.small_container().unwrap();
    }
}

fn unread(server: &Server, api: &Api, lists: u32) -> std::net::TcpStream {
    connection(server, &no_window(), lists, |n| {
        head(n, "GET", "/api/instance/", api.key(), true)
    })
}

#[test]
fn unread_responses_of_one_user_refuse_no_other() {
    let (server, ann) = start_limited("unsent_mib = 4");
    let bob = server.user("bob@example.com").unwrap();
    four(&ann);
    four(&bob);
    // A user has 512 KiB, and a connection 128 KiB.
    let connections: Vec<_> = (0..6).map(|_| unread(&server, &ann, 100)).collect();
    crate::wait_until("the share of the user is full", || {
        Ok((ann.get("/api/instance/")?.status == 503).then_some(()))
    });
    for _ in 0..20 {
        bob.get("/api/instance/").is(200);
        bob.send("POST", "/api/estimate/", &crate::small("container"))
            .is(200);
    }
    drop(connections);
    crate::wait_until("the responses are given up", || {
        Ok((ann.get("/api/instance/")?.status == 200).then_some(()))
    });
}

#[test]
fn unread_responses_on_one_connection_refuse_no_other_of_the_user() {
    let (server, ann) = start_limited("unsent_mib = 4");
    four(&ann);
    let address = server.base_url().strip_prefix("http://").unwrap();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // A connection has 128 KiB, and reads no body.
    let (statuses, _unread) = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let client = h2::client::Builder::new()
            .initial_window_size(0)
            .handshake(stream);
        let (mut client, connection): (SendRequest<&'static [u8]>, _) = client.await.unwrap();
        tokio::spawn(connection);
        let (mut statuses, mut unread) = (BTreeMap::<u16, usize>::new(), Vec::new());
        for _ in 0..100 {
            let request = Request::get(format!("http://{address}/api/instance/"))
                .version(Version::HTTP_2)
                .header("authorization", format!("Bearer {}", ann.key()));
            client = client.ready().await.unwrap();
            let (response, _) = client
                .send_request(request.body(()).unwrap(), true)
                .unwrap();
            let response = response.await.unwrap();
            *statuses.entry(response.status().as_u16()).or_default() += 1;
            unread.push(response);
        }
        (statuses, unread)
    });
    assert!(statuses[&200] > 10 && statuses[&503] > 50, "{statuses:?}");
    for _ in 0..20 {
        ann.get("/api/instance/").is(200);
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// The responses to strangers have heads and states, and cost memory although their bodies are small.
#[test]
fn unread_responses_of_strangers_end_their_streams_and_refuse_no_user() {
    const RST_STREAM: u8 = 3;
    let (server, ann) = start_limited("unsent_mib = 4");
    // A network has 72 KiB, and each connection 16 KiB anyway. A response costs more than 1 KiB.
    let unread = || {
        let stream = connection(&server, &no_window(), 100, |n| {
            head(n, "GET", "/api/instance/", "", true)
        });
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    };
    let (first, mut second) = (unread(), unread());
    let mut kinds = std::iter::from_fn(|| read_frame(&mut second));
    assert!(kinds.any(|kind| kind == RST_STREAM), "no stream was reset");
    assert!(ann.list().unwrap().is_empty());
    // A shutdown would wait for them.
    drop((first, second));
}
