//! HTTP/2 with prior knowledge, with a client library and with hand-written frames.

use super::wire::connect;
use crate::start;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use ureq::http::{Request, Version};
use wharf_tests::{Answer, Server, agrees_with_document};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Appends a header field without index and without Huffman coding.
fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 127);
        block.push(length);
        block.extend(text.as_bytes());
    }
}

fn get(stream: u32, path: &str, key: &str) -> Vec<u8> {
    head(stream, "GET", path, key, true)
}

/// Encodes the head of a request. Its stream ends, or stays open for a body.
pub(super) fn head(stream: u32, method: &str, path: &str, key: &str, ends: bool) -> Vec<u8> {
    let mut block = vec![0x86];
    field(&mut block, ":method", method);
    field(&mut block, ":path", path);
    field(&mut block, ":authority", "x");
    field(&mut block, "authorization", &format!("Bearer {key}"));
    field(&mut block, "content-type", "application/json");
    let end = if ends { END_STREAM } else { 0 };
    frame(HEADERS, END_HEADERS | end, stream, &block)
}

/// Reads a frame and returns its kind.
pub(super) fn read_frame(stream: &mut TcpStream) -> Option<u8> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    stream.read_exact(&mut vec![0; length]).ok()?;
    Some(head[3])
}

#[test]
fn requests_share_a_connection() {
    let (server, api) = start();
    api.small_container().unwrap();
    let paths = ["/api/instance/", "/api/instance/nothing/", "/healthz"];
    let asked: Vec<&str> = paths.into_iter().cycle().take(60).collect();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build().unwrap();
    let answers = runtime.block_on(all_at_once(&server, api.key(), &asked));
    // A shutdown would wait for its connection.
    drop(runtime);
    assert_eq!(answers.len(), asked.len());
    for (path, answer) in asked.into_iter().zip(answers) {
        agrees_with_document("GET", path, &answer, true).unwrap();
        let status = if path.contains("nothing") { 404 } else { 200 };
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.body.is_array(), path == paths[0], "{answer:?}");
    }
}

/// Sends all requests before it reads the first answer.
async fn all_at_once(server: &Server, key: &str, paths: &[&str]) -> Vec<Answer> {
    let address = server.base_url().strip_prefix("http://").unwrap();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut under_way = Vec::new();
    for path in paths {
        let request = Request::get(format!("http://{address}{path}"))
            .version(Version::HTTP_2)
            .header("authorization", format!("Bearer {key}"));
        client = client.ready().await.unwrap();
        let (answer, _) = client
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        under_way.push(answer);
    }
    let mut answers = Vec::new();
    for answer in under_way {
        let (head, mut body) = answer.await.unwrap().into_parts();
        let mut bytes = Vec::new();
        while let Some(piece) = body.data().await {
            bytes.extend(piece.unwrap());
        }
        answers.push(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&bytes).unwrap(),
        });
    }
    answers
}

/// A WebSocket over HTTP/2 needs an extension that the server does not announce.
#[test]
fn an_extended_connect_is_refused_and_its_connection_serves_on() {
    let (server, api) = start();
    let instance = api.small_container().unwrap();
    api.wait_for(crate::uuid(&instance), "running").unwrap();
    let path = format!("/api/instance/{}/terminal/", crate::uuid(&instance));
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "x"),
        ("sec-websocket-version", "13"),
    ] {
        field(&mut block, name, value);
    }
    let mut stream = connect(&server);
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut frames = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    frames.extend(frame(HEADERS, END_HEADERS, 1, &block));
    frames.extend(get(3, "/healthz", api.key()));
    stream.write_all(&frames).unwrap();
    let until = |kind, stream: &mut TcpStream| loop {
        match read_frame(stream) {
            Some(read) if read == kind => return true,
            Some(_) => {}
            None => return false,
        }
    };
    assert!(until(RST_STREAM, &mut stream), "no stream was reset");
    assert!(until(HEADERS, &mut stream), "the connection has ended");
    // A plain request is checked alike.
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build().unwrap();
    let answers = runtime.block_on(all_at_once(&server, api.key(), &[&path]));
    assert_eq!(answers[0].status, 426, "{answers:?}");
    assert_eq!(answers[0].header("upgrade"), None);
    drop((runtime, stream));
}

#[test]
fn a_silent_peer_does_not_hold_up_the_shutdown() {
    let (mut server, api) = start();
    let mut stream = connect(&server);
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream.write_all(&get(1, "/healthz", api.key())).unwrap();
    // After an answer, the connection counts as used.
    assert!(read_frame(&mut stream).is_some());
    let begin = Instant::now();
    assert!(server.terminate().unwrap().success());
    let took = begin.elapsed();
    println!("ended {took:?} after it was asked to");
    // Requests in progress get 20 seconds.
    assert!(took < Duration::from_secs(15), "{took:?}");
    server.run().unwrap();
}

#[test]
fn broken_frames_end_only_their_connection() {
    let (server, api) = start();
    let settings = frame(SETTINGS, 0, 0, &[]);
    let endless = frame(HEADERS, 0, 1, &[0x82, 0x86]);
    for (name, frames) in [
        (
            "a wrong preface",
            b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(),
        ),
        (
            "settings on a stream",
            [PREFACE, &frame(SETTINGS, 0, 1, &[])].concat(),
        ),
        (
            "settings of half a size",
            [PREFACE, &frame(SETTINGS, 0, 0, &[0; 3])].concat(),
        ),
        (
            "a ping of a wrong size",
            [PREFACE, &settings, &frame(PING, 0, 0, &[0; 4])].concat(),
        ),
        (
            "an even stream",
            [PREFACE, &settings, &get(2, "/healthz", "")].concat(),
        ),
        (
            "a table index that is not there",
            [
                PREFACE,
                &settings,
                &frame(HEADERS, 5, 1, &[0xff, 0xff, 0xff, 0x7f]),
            ]
            .concat(),
        ),
        (
            "a head cut by another frame",
            [PREFACE, &settings, &endless, &frame(PING, 0, 0, &[0; 8])].concat(),
        ),
        (
            "a frame too large",
            [PREFACE, &settings, &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
        ),
    ] {
        let mut stream = connect(&server);
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(&frames).unwrap();
        let mut last = None;
        while let Some(kind) = read_frame(&mut stream) {
            last = Some(kind);
        }
        println!("{name}: the last frame is of kind {last:?}");
        assert!(
            matches!(last, None | Some(GOAWAY | SETTINGS | 3)),
            "{name}: {last:?}"
        );
        assert_eq!(api.get("/healthz").unwrap().status, 200, "{name}");
    }
}
