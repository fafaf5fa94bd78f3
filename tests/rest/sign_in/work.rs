//! The work of refused sign-ins: equal, whether the user exists or not.

use super::{ANN, ConsoleBrowser, PASSWORD};
use crate::start;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use wharf_tests::Server;

/// The number of hashes of passwords that the metrics show.
fn hashes(server: &Server, key: &str) -> u64 {
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("wharf_password_hashes_total "));
    count.expect(&text).parse().unwrap()
}

#[test]
fn each_refusal_of_a_password_computes_one_hash() {
    let (server, _) = start();
    let mut browser = ConsoleBrowser::new(&server);
    browser.accept(&server, ANN);
    server.cli(&["key", "new", "bob@example.com"]).unwrap();
    browser.accept(&server, "eve@example.com");
    server.cli(&["user", "disable", "eve@example.com"]).unwrap();
    let args = ["key", "new", ANN, "--scope", "metrics"];
    let key = server.cli(&args).unwrap();
    let count = || hashes(&server, key.trim());
    let long = "x".repeat(10_000);
    for (email, password, case) in [
        (ANN, "not the password", "a wrong password"),
        ("nobody@example.com", PASSWORD, "an unknown user"),
        ("bob@example.com", PASSWORD, "a user without a password"),
        ("eve@example.com", PASSWORD, "a disabled user"),
        (ANN, long.as_str(), "a password that is too long"),
        ("nobody@example.com", "", "no password"),
    ] {
        let before = count();
        let body = json!({ "email": email, "password": password });
        let refused = ConsoleBrowser::new(&server).send("POST", "/auth/sign-in/", &body);
        assert_eq!(refused.status, 400, "{case}");
        assert_eq!(count() - before, 1, "{case}");
    }
    server.finish().unwrap();
}
