//! Pages below one domain are one site: a neighbour's requests come with the visitor's cookies. Each is refused
//! and never reaches the page, which would take it for the visitor's.

use crate::house::{HOST, ORIGIN, Running};
use crate::page::Server;
use std::sync::atomic::Ordering;

const EVIL: &str = "origin: https://evil.pages.example";
const SOCKET: &str = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                      sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";

#[tokio::test]
async fn a_neighbour_has_no_part_in_a_visitors_session() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let site = "sec-fetch-site: same-site";
    let frame = "sec-fetch-mode: navigate\r\nsec-fetch-dest: iframe";
    let window = "sec-fetch-mode: navigate\r\nsec-fetch-dest: document";
    let empty = "content-length: 0";
    for (method, lines) in [
        // A fetch, an image, a script.
        ("GET", [site, "sec-fetch-mode: cors"]),
        ("GET", [site, "sec-fetch-dest: script"]),
        // A fetch of an older browser.
        ("GET", [EVIL, "x: y"]),
        // A frame, and a form in one.
        ("GET", [site, frame]),
        ("POST", [frame, EVIL]),
        ("POST", [window, EVIL]),
        ("POST", [EVIL, empty]),
        ("POST", [site, empty]),
        ("POST", ["origin: null", empty]),
        ("DELETE", [EVIL, site]),
        ("OPTIONS", [EVIL, "access-control-request-method: PUT"]),
        ("GET", [SOCKET, EVIL]),
        ("GET", [SOCKET, site]),
    ] {
        let answer = running
            .ask(method, "/", &[&cookie, lines[0], lines[1]])
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 403"),
            "{method} {lines:?}: {answer}"
        );
    }
    // Programs send neither header, and no cookie alone lets them change anything.
    for lines in [empty, SOCKET] {
        let method = if lines == SOCKET { "GET" } else { "POST" };
        let answer = running.ask(method, "/", &[&cookie, lines]).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 0);
    // The page's own requests and a link from elsewhere pass.
    let own = format!("origin: {ORIGIN}");
    for (method, lines) in [
        (
            "GET",
            ["sec-fetch-site: same-origin", "sec-fetch-mode: cors"],
        ),
        ("GET", ["sec-fetch-site: same-origin", frame]),
        ("POST", [own.as_str(), empty]),
        ("POST", ["sec-fetch-site: same-origin", empty]),
        ("GET", [site, window]),
        ("GET", ["sec-fetch-site: cross-site", window]),
    ] {
        let answer = running
            .ask(method, "/", &[&cookie, lines[0], lines[1]])
            .await;
        assert!(
            answer.starts_with("HTTP/1.1 200"),
            "{method} {lines:?}: {answer}"
        );
        assert!(answer.contains(HOST), "{answer}");
    }
}

/// A tenant's page cannot give itself a neighbour's or the gateway's cookie, or clear them.
#[tokio::test]
async fn a_page_sets_cookies_for_itself_alone() {
    let server = Server::start(|mut io| async move {
        crate::page::head(&mut io).await?;
        let lines = "set-cookie: __Host-wharf-page=x; Path=/; Secure\r\nset-cookie: a=1; Domain=pages.example\r\n\
                     clear-site-data: \"cookies\"\r\nalt-svc: h3=\":443\"\r\nserver: x\r\n\
                     strict-transport-security: max-age=9; includeSubDomains\r\n";
        crate::page::respond(&mut io, "200 OK", lines, b"").await
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let answer = running.ask("GET", "/", &[&cookie]).await;
    let mut lines: Vec<_> = answer
        .lines()
        .filter(|line| !line.starts_with("date"))
        .collect();
    lines.sort();
    let expected = [
        "",
        "HTTP/1.1 200 OK",
        "connection: close",
        "content-length: 0",
        "set-cookie: a=1; Secure",
        "strict-transport-security: max-age=31536000",
    ];
    assert_eq!(lines, expected);
}
