//! Heads of requests by hand: what is refused, what a page gets, and what is never passed on.

use crate::house::{BASIC, CREDENTIAL, DOMAIN, HOST, Running};
use crate::page::{Server, value};
use std::sync::atomic::Ordering;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn a_page_gets_one_host_its_credential_and_nothing_forged() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let lines = [
        &*format!("{cookie}; theirs=1"),
        "x-forwarded-for: 1.2.3.4",
        "x_forwarded_for: 1.2.3.4",
        "forwarded: for=1.2.3.4",
        "wharf-user: eve",
        "authorization: Bearer wharf_0123_secret",
        "upgrade: h2c",
        "http2-settings: AAMAAABkAAQAAP__",
        "te: trailers",
        "x-own: kept",
    ];
    let told = running.ask("GET", "/lab?q=%2F#x", &lines).await;
    let (head, told) = told.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(
        value(head, "strict-transport-security"),
        Some("max-age=31536000")
    );
    let mut lines: Vec<_> = told.lines().collect();
    lines[1..].sort();
    let expected = [
        "GET /lab?q=%2F HTTP/1.1",
        &format!("authorization: {CREDENTIAL}"),
        "body: 0",
        "cookie: theirs=1",
        &format!("host: {HOST}"),
        "x-forwarded-for: 127.0.0.1",
        &format!("x-forwarded-host: {HOST}"),
        "x-forwarded-proto: https",
        "x-own: kept",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn requests_that_two_parties_could_read_in_two_ways_are_refused() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let head = format!("POST / HTTP/1.1\r\nhost: {HOST}\r\norigin: https://{HOST}\r\n{cookie}\r\n");
    let with = |lines: &str| format!("{head}{lines}");
    let of = |target: &str, host: &str| {
        format!("GET {target} HTTP/1.1\r\n{host}{cookie}\r\nconnection: close\r\n\r\n")
    };
    let host = format!("host: {HOST}\r\n");
    let elsewhere = format!("http://other.{DOMAIN}/");
    for (bytes, status) in [
        (of("/", ""), "400"),
        (of("/", &host.repeat(2)), "400"),
        (of(&elsewhere, &host), "400"),
        (of(&format!("https://{HOST}/"), &host), "200"),
        (of("*", &host), "400"),
        (of("/", "host: wharf.example\r\n"), "421"),
        (of("/", "host: demo.pages.example.\r\n"), "421"),
        (of("/", "host: demo.pages.example:8443\r\n"), "421"),
        (of("/", "host: a@demo.pages.example\r\n"), "421"),
        (of("/", &format!("host: a.{HOST}\r\n")), "421"),
        (of("/", "host: demo.pages.example:443\r\n"), "200"),
        (of("/", "host: DEMO.pages.example\r\n"), "200"),
        (
            format!("CONNECT {HOST}:443 HTTP/1.1\r\nhost: {HOST}:443\r\nconnection: close\r\n\r\n"),
            "405",
        ),
        (
            format!("TRACE / HTTP/1.1\r\n{host}connection: close\r\n\r\n"),
            "405",
        ),
        (with("content-length: +4\r\n\r\nabcd"), "400"),
        (
            with("content-length: 4\r\ncontent-length: 5\r\n\r\nabcde"),
            "400",
        ),
        (with("content-length: 4, 5\r\n\r\nabcde"), "400"),
        (
            with("transfer-encoding: gzip, chunked, gzip\r\n\r\n0\r\n\r\n"),
            "400",
        ),
        (with("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"), "400"),
        (with("transfer-encoding : chunked\r\n\r\n0\r\n\r\n"), "400"),
        (with("x-a: b\r\n c\r\n\r\n"), "400"),
        (with("x-a: b\rc\r\n\r\n"), "400"),
        (
            format!("POST / HTTP/1.0\r\n{host}transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            "400",
        ),
    ] {
        let answer = running.exchange(bytes.as_bytes()).await;
        let line = answer.lines().next().unwrap_or_default();
        assert!(line.contains(status), "{line:?} for {bytes}");
    }
}

/// With both lengths, the chunks count, the page gets one length, and the bytes behind are no request.
#[tokio::test]
async fn two_lengths_smuggle_nothing() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    for lengths in [
        "content-length: 6\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 6\r\n",
    ] {
        let bytes = format!(
            "POST /outer HTTP/1.1\r\nhost: {HOST}\r\norigin: https://{HOST}\r\n{cookie}\r\n{lengths}\r\n\
             1\r\na\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n"
        );
        let answer = running.exchange(bytes.as_bytes()).await;
        let (head, told) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200") && told.contains("/outer"),
            "{answer}"
        );
        assert!(
            told.contains("body: 1\n") && !told.contains("content-length"),
            "{answer}"
        );
        assert!(!answer.contains("smuggled"), "{answer}");
    }
}

/// Ends of lines without CR are allowed, and reach the page as whole ones.
#[tokio::test]
async fn a_bare_lf_is_not_passed_on() {
    let server = Server::start(|mut io| async move {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            all.push(io.read_u8().await?);
        }
        let bare = all
            .windows(2)
            .any(|pair| pair[1] == b'\n' && pair[0] != b'\r');
        let told = if bare { "bare" } else { "whole" };
        crate::page::respond(&mut io, "200 OK", "", told.as_bytes()).await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let bytes = format!("GET / HTTP/1.1\nhost: {HOST}\n{cookie}\nconnection: close\n\n");
    let answer = running.exchange(bytes.as_bytes()).await;
    assert!(answer.ends_with("whole"), "{answer}");
}

#[tokio::test]
async fn heads_that_are_too_large_lose_their_cookies() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    for (size, status, is_cleared) in [(60, "200", false), (70, "431", true), (200, "431", true)] {
        let bomb = format!("{cookie}; a={}", "b".repeat(size * 1_000));
        let answer = running.ask("GET", "/", &[&bomb]).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{size}: {answer:.60}"
        );
        let cleared = answer.contains("clear-site-data: \"cookies\"");
        assert_eq!(cleared, is_cleared, "{size}");
        // Not every browser clears the cookies of a neighbour's domain by that header.
        let removed = format!("set-cookie: a=; Domain={DOMAIN}; Path=/; Max-Age=0");
        assert_eq!(answer.contains(&removed), is_cleared, "{size}: {answer}");
        assert!(!answer.contains("set-cookie: __Host-"), "{size}: {answer}");
    }
    let answer = running
        .ask("GET", "/", &[&format!("a: {}", "b".repeat(300_000))])
        .await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer:.60}");
}

#[tokio::test]
async fn paths_of_the_gateway_and_of_authorities_never_reach_a_page() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    for (path, status) in [
        ("/.well-known/acme-challenge/token", "404"),
        ("/.well-known/acme-challenge", "404"),
        ("/.well-known/pki-validation/fileauth.txt", "404"),
        ("/.wharf/", "404"),
        ("/.wharf/x", "404"),
        ("/.wharf/enter", "403"),
        ("/.well-known/other", "200"),
        ("/wharf", "200"),
    ] {
        let answer = running.ask("GET", path, &[&cookie]).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{path}: {answer}"
        );
        let post = [
            &*cookie,
            "origin: https://demo.pages.example",
            "content-length: 0",
        ];
        let answer = running.ask("POST", path, &post).await;
        assert_eq!(
            answer.starts_with("HTTP/1.1 200"),
            status == "200",
            "{path}: {answer}"
        );
    }
}

#[tokio::test]
async fn programs_give_the_password_of_the_instance() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let basic = format!("authorization: {BASIC}");
    let told = running
        .ask("PUT", "/a", &[&basic, "content-length: 0"])
        .await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    assert!(told.contains(&format!("authorization: {CREDENTIAL}\n")) && !told.contains("Basic"));
    let attempts = running.house.attempts.load(Ordering::Relaxed);
    let wrong = running
        .ask("GET", "/", &["authorization: Basic dXNlcjp3cm9uZw=="])
        .await;
    assert!(wrong.starts_with("HTTP/1.1 401") && wrong.contains("www-authenticate: Basic"));
    assert_eq!(running.house.attempts.load(Ordering::Relaxed), attempts + 1);
    for key in ["Bearer wharf_0123_secret", "wharf_0123_secret", "Bearer x"] {
        let line = format!("authorization: {key}");
        let refused = running.ask("GET", "/", &[&line]).await;
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    }
    assert_eq!(running.house.attempts.load(Ordering::Relaxed), attempts + 1);
    for _ in 0..5 {
        running.ask("GET", "/", &[&basic]).await;
    }
    assert!(
        running
            .ask("GET", "/", &[&basic])
            .await
            .starts_with("HTTP/1.1 429")
    );
}
