//! The files of the console, and the headers that protect it.

use std::io::Read;
use wharf_tests::{Api, Ports, Server, simulated_node};

/// The most bytes of the first visit, compressed, without the terminal and the charts.
const FIRST_LOAD: usize = 120 * 1024;
const PAGES: [&str; 16] = [
    "/",
    "/sign-in",
    "/invite",
    "/device",
    "/instances",
    "/instances/new",
    "/instances/some-name",
    "/instances/some-name/terminal",
    "/usage",
    "/events",
    "/settings/keys",
    "/settings/ssh-keys",
    "/settings/account",
    "/settings/webhooks",
    "/settings/buckets",
    "/audit",
];

fn start() -> (Server, Api) {
    let ports = Ports::take().settings();
    let server = Server::start(&format!("{ports}{}", simulated_node("one", "")))
        .unwrap()
        .checked_at_end();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

/// A response as a browser gets it: its headers, and its body as it is on the way.
fn fetch(server: &Server, path: &str) -> (ureq::http::response::Parts, Vec<u8>) {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent = ureq::Agent::from(config.build());
    let url = format!("{}{path}", server.base_url());
    let response = agent
        .get(url)
        .header("accept-encoding", "gzip")
        .call()
        .unwrap();
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    body.as_reader().read_to_end(&mut bytes).unwrap();
    (parts, bytes)
}

fn unpack(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// The names of files under `/assets/` in a text.
fn files(text: &str) -> Vec<String> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c));
    let names = text.split("/assets/").skip(1);
    let names = names.filter_map(|rest| rest.split(ends).next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_address_of_the_console_has_its_page_and_a_strict_policy() {
    let (server, _) = start();
    let (_, index) = fetch(&server, "/");
    for path in PAGES {
        let (parts, body) = fetch(&server, path);
        let header = |name: &str| parts.headers[name].to_str().unwrap();
        assert_eq!(parts.status, 200, "{path}");
        assert_eq!(body, index, "{path}");
        assert!(header("content-type").starts_with("text/html"), "{path}");
        assert_eq!(header("cache-control"), "no-cache", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'self';"),
            "{path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        let inline = policy.contains("unsafe-inline");
        assert_eq!(inline, path.ends_with("/terminal"), "{path}: {policy}");
        assert!(!policy.contains("script-src"), "{path}: {policy}");
    }
}

#[test]
fn the_first_load_is_small_and_its_files_are_kept_by_browsers() {
    let (server, _) = start();
    let (_, index) = fetch(&server, "/");
    let mut bytes = index.len();
    let named = files(&unpack(&index));
    assert!(named.len() >= 3, "{named:?}");
    for name in named {
        let (parts, body) = fetch(&server, &format!("/assets/{name}"));
        assert_eq!(parts.status, 200, "{name}");
        assert_eq!(parts.headers["content-encoding"], "gzip", "{name}");
        let cache = parts.headers["cache-control"].to_str().unwrap();
        assert_eq!(cache, "public, max-age=31536000, immutable", "{name}");
        bytes += body.len();
    }
    println!("first load: {bytes} bytes");
    assert!(bytes <= FIRST_LOAD, "{bytes}");
}

#[test]
fn unknown_addresses_stay_404_for_programs() {
    let (_server, api) = start();
    for path in [
        "/assets/none.js",
        "/assets/%2e%2e%2findex.html",
        "/assets/index.html",
        "/index.html",
        "/instances/a/b",
        "/settings",
        "/nothing",
    ] {
        let answer = api.get(path).unwrap();
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(answer.body["detail"].is_string(), "{path}: {answer:?}");
    }
    let answer = api.raw("POST", "/instances", None).unwrap();
    assert_eq!(answer.status, 405, "{answer:?}");
}
