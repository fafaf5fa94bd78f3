//! HTTP/2 with prior knowledge, in frames made by hand.

use super::wire::connect;
use crate::start;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header field without index and without Huffman coding.
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
    let mut block = vec![0x82, 0x86];
    field(&mut block, ":path", path);
    field(&mut block, ":authority", "x");
    field(&mut block, "authorization", &format!("Bearer {key}"));
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn read_frame(stream: &mut TcpStream) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).ok()?;
    Some(Frame {
        kind: head[3],
        flags: head[4],
        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        payload,
    })
}

#[test]
fn requests_share_a_connection() {
    let (server, api) = start();
    api.small_container().unwrap();
    let mut stream = connect(&server);
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let streams: Vec<u32> = (0..60).map(|n| 2 * n + 1).collect();
    for id in &streams {
        let path = ["/api/instance/", "/nothing", "/healthz"][*id as usize / 2 % 3];
        bytes.extend(get(*id, path, api.key()));
    }
    stream.write_all(&bytes).unwrap();
    // By stream: the first byte of the header block is the status where HPACK has it in its table.
    let mut heads = BTreeMap::new();
    let mut ended = Vec::new();
    let mut bodies: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    while ended.len() < streams.len() {
        let Frame {
            kind,
            flags,
            stream: id,
            payload,
        } = read_frame(&mut stream).expect("answers");
        match kind {
            HEADERS => drop(heads.insert(id, payload[0])),
            DATA => bodies.entry(id).or_default().extend(payload),
            SETTINGS if flags & ACK == 0 => {
                stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap()
            }
            _ => {}
        }
        if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
            ended.push(id);
        }
    }
    for id in streams {
        let (status, path) =
            [(0x88, "list"), (0x8d, "nothing"), (0x88, "health")][id as usize / 2 % 3];
        // 0x20 and the like announce a change of the table's size before the first field.
        assert!(
            heads[&id] == status || heads[&id] & 0xe0 == 0x20,
            "{path}: {:#x}",
            heads[&id]
        );
        let body: serde_json::Value = serde_json::from_slice(&bodies[&id]).unwrap();
        assert_eq!(body.is_array(), path == "list", "{body}");
    }
    server.finish().unwrap();
}

#[test]
fn a_silent_peer_does_not_hold_up_the_shutdown() {
    let (mut server, api) = start();
    let mut stream = connect(&server);
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream.write_all(&get(1, "/healthz", api.key())).unwrap();
    // It has answered, so this is a connection that was in use.
    assert!(read_frame(&mut stream).is_some());
    let begin = Instant::now();
    assert!(server.terminate().unwrap().success());
    let took = begin.elapsed();
    println!("ended {took:?} after it was asked to");
    // Requests that run get 20 seconds.
    assert!(took < Duration::from_secs(15), "{took:?}");
    server.run().unwrap();
    server.finish().unwrap();
}

#[test]
fn broken_frames_end_the_connection_and_nothing_else() {
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
        while let Some(frame) = read_frame(&mut stream) {
            last = Some(frame.kind);
        }
        println!("{name}: the last frame is of kind {last:?}");
        assert!(
            matches!(last, None | Some(GOAWAY | SETTINGS | 3)),
            "{name}: {last:?}"
        );
        assert_eq!(api.get("/healthz").unwrap().status, 200, "{name}");
    }
    server.finish().unwrap();
}
