//! Compressed responses and their entity tags.

use crate::{running, start};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use wharf_tests::Answer;

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

#[test]
fn a_compressed_list_has_a_tag_of_its_own() {
    let (server, api) = start();
    for _ in 0..3 {
        running(&api);
    }
    let plain = api.get("/api/instance/").unwrap();
    let get = |headers: &str| {
        let address = server.base_url().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let key = api.key();
        write!(
            stream,
            "GET /api/instance/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             connection: close\r\naccept-encoding: gzip\r\n{headers}\r\n"
        )
        .unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        (
            String::from_utf8(all[..end].to_vec()).unwrap(),
            all[end..].to_vec(),
        )
    };
    let (head, body) = get("");
    let tag = format!("{}-gzip\"", etag(&plain).trim_end_matches('"'));
    assert!(head.contains(&format!("etag: {tag}\r\n")), "{head}");
    assert!(head.contains("vary: accept-encoding\r\n") && head.contains("content-encoding: gzip"));
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), plain.body);
    let (head, body) = get(&format!("if-none-match: {tag}\r\n"));
    assert!(
        head.starts_with("HTTP/1.1 304") && body.is_empty(),
        "{head}"
    );
    assert!(head.contains("vary: accept-encoding\r\n") && !head.contains("content-encoding"));
    let (head, _) = get(&format!("if-none-match: {}\r\n", etag(&plain)));
    assert!(
        head.starts_with("HTTP/1.1 200"),
        "another representation: {head}"
    );
    server.finish().unwrap();
}
