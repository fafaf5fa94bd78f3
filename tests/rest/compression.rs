//! Compressed responses and their entity tags.

use crate::hygiene::send;
use crate::{running, start};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;

#[test]
fn a_long_list_is_compressed_on_request_with_a_tag_of_its_own() {
    let (server, api) = start();
    for _ in 0..3 {
        running(&api);
    }
    let shown = api.get("/api/instance/").unwrap();
    let own = shown.header("etag").unwrap();
    let get = |headers: &str| {
        let key = api.key();
        let request = format!(
            "GET /api/instance/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Connection: close\r\n{headers}\r\n"
        );
        let bytes = send(&server, request.as_bytes()).bytes;
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert!(head.contains("vary: accept-encoding\r\n"), "{head}");
        (head, bytes[end..].to_vec())
    };
    let (head, plain) = get("");
    assert!(!head.contains("content-encoding"), "{head}");
    let (head, packed) = get("Accept-Encoding: gzip\r\n");
    let tag = format!("{}-gzip\"", own.trim_end_matches('"'));
    let length = format!("content-length: {}", packed.len());
    for line in [&format!("etag: {tag}"), "content-encoding: gzip", &length] {
        assert!(head.contains(&format!("{line}\r\n")), "{line}: {head}");
    }
    assert!(packed.len() < plain.len() / 2);
    let mut text = String::new();
    GzDecoder::new(&packed[..])
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), shown.body);
    let (head, body) = get(&format!(
        "Accept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n"
    ));
    assert!(
        head.starts_with("http/1.1 304") && body.is_empty(),
        "{head}"
    );
    assert!(!head.contains("content-encoding"), "{head}");
    let (head, _) = get(&format!(
        "Accept-Encoding: gzip\r\nIf-None-Match: {own}\r\n"
    ));
    assert!(
        head.starts_with("http/1.1 200"),
        "another representation: {head}"
    );
    let (head, _) = get("Accept-Encoding: br, gzip;q=0\r\n");
    assert!(!head.contains("content-encoding"), "{head}");
}
