//! Sessions over plain HTTP, where a browser sends the cookie to servers in instances too; and the exact
//! origin of the console.

use super::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, start};
use serde_json::{Value, json};
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Ports, simulated_node};

const SAME_ORIGIN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");
const STREAM: (&str, &str) = ("Accept", "text/event-stream");

#[test]
fn over_plain_http_the_cookie_alone_opens_nothing() {
    let (server, _) = start();
    let mut browser = ConsoleBrowser::accepted(&server, ANN);
    let mut other = ConsoleBrowser::new(&server);
    other.sign_in(PASSWORD);
    let status = |browser: &ConsoleBrowser, method: &str, path: &str, headers: &[(&str, &str)]| {
        let headers = [headers, &[SAME_ORIGIN]].concat();
        let sent = browser.send_bare(method, path, &headers, &Value::Null);
        sent.status
    };
    for (method, path) in [
        ("GET", "/api/session/"),
        ("GET", "/api/instance/"),
        ("GET", "/api/key/"),
        ("GET", "/api/event/?limit=1"),
        ("GET", "/auth/passkey/"),
        ("POST", "/auth/sign-out/"),
        ("POST", "/auth/ticket/"),
    ] {
        assert_eq!(status(&browser, method, path, &[]), 401, "{path}");
        for part in ["", "x", other.part.as_str()] {
            let wrong = [("Wharf-Session", part)];
            assert_eq!(status(&browser, method, path, &wrong), 401, "{path} {part}");
        }
    }
    assert_eq!(status(&browser, "GET", "/api/event/", &[STREAM]), 401);
    let upgrade = [("Upgrade", "websocket")];
    assert_eq!(status(&browser, "GET", "/api/instance/", &upgrade), 401);

    // A ticket is of one session, for one stream.
    let stream = |browser: &ConsoleBrowser, ticket: &str| {
        let path = format!("/api/instance/{ticket}");
        status(browser, "GET", &path, &upgrade)
    };
    let ticket = browser.ticket("");
    assert_eq!(stream(&browser, &ticket), 200);
    assert_eq!(stream(&browser, &ticket), 401);
    assert_eq!(stream(&other, &browser.ticket("")), 401);
    assert_eq!(
        stream(&ConsoleBrowser::new(&server), &browser.ticket("")),
        401
    );
    let plain = format!("/api/session/{}", browser.ticket(""));
    assert_eq!(status(&browser, "GET", &plain, &[]), 401);

    // A page on another port can add a cookie, which signs nobody out.
    let tossed = format!("{}x; {}", other.cookie, browser.cookie);
    let cookie = std::mem::replace(&mut browser.cookie, tossed);
    assert!(browser.is_signed_in());
    browser.cookie = cookie;
    browser
        .send("POST", "/auth/sign-out/", &Value::Null)
        .is(204);
}

#[test]
fn two_servers_on_one_host_have_cookies_of_their_own() {
    let names = [(); 2].map(|()| {
        let (server, _) = start();
        let browser = ConsoleBrowser::accepted(&server, ANN);
        let name = browser.cookie.split('=').next().unwrap().to_owned();
        server.finish().unwrap();
        name
    });
    assert!(
        names.iter().all(|name| name.starts_with("wharf-")),
        "{names:?}"
    );
    assert_ne!(names[0], names[1]);
}

#[test]
fn the_origin_of_the_console_is_exactly_that_of_base_url() {
    let node = simulated_node("one", "");
    let ports = Ports::take().settings();
    let base_url = "base_url = \"https://wharf.example.org\"";
    let server = crate::serve(&format!("{base_url}\n{ports}{node}"));
    let link = server.cli(&["user", "invite", ANN]).unwrap();
    let (_, token) = link.trim().split_once('#').unwrap();
    let own = ("Origin", "https://wharf.example.org");
    let host = ("Host", "wharf.example.org");
    let mut browser = ConsoleBrowser::new(&server);
    let body = json!({ "token": token, "password": PASSWORD });
    let foreign = [
        &[("Origin", "http://wharf.example.org")][..],
        &[
            ("Origin", "http://wharf.example.org"),
            ("Sec-Fetch-Site", "cross-site"),
        ],
        &[("Origin", "https://wharf.example.org:8443")],
        &[own, ("Sec-Fetch-Site", "cross-site")],
        &[("Origin", "null")],
    ];
    let from = |headers: &[(&'static str, &'static str)]| [headers, &[host]].concat();
    for headers in foreign {
        let path = "/auth/invite/accept/";
        let refused = browser.send_from("POST", path, &from(headers), &body);
        let words = refused.is(403)["detail"].to_string();
        assert!(words.contains(own.1), "{words}");
    }
    let accepted = browser.send_from("POST", "/auth/invite/accept/", &from(&[own]), &body);
    browser.keep_cookie(accepted);
    // Over https the cookie is the whole token.
    assert!(browser.cookie.starts_with("__Host-wharf=") && browser.part.is_empty());
    let create =
        json!({ "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10 });
    for headers in foreign {
        let refused = browser.send_from("POST", "/api/instance/", &from(headers), &create);
        assert_eq!(refused.status, 403, "{headers:?}");
        let upgrade = [&from(headers)[..], &[("Upgrade", "websocket")]].concat();
        let refused = browser.send_from("GET", "/api/instance/", &upgrade, &Value::Null);
        assert_eq!(refused.status, 403, "{headers:?}");
    }
    browser
        .send_from("POST", "/api/instance/", &from(&[own]), &create)
        .is(201);
}

#[test]
fn a_console_on_a_host_of_instances_is_warned_about() {
    let node = format!("{}ssh_host = \"127.0.0.1\"\n", simulated_node("one", ""));
    let dir = tempfile::tempdir().unwrap();
    let check = |base_url: &str, hosts: &str| {
        let config = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\nbase_url = \"{base_url}\"\n{hosts}"
        );
        crate::check::checked(&wharf_binary(), &dir.path().join("wharf.toml"), &config)
    };
    let other = "ssh_host = \"ssh.example.org\"\n[web]\nhost = \"pages.example.org\"\n";
    let plain = simulated_node("one", "");
    for (base_url, hosts, setting) in [
        (
            "http://localhost:8080",
            format!("{other}{node}"),
            "node.one.ssh_host",
        ),
        (
            "https://SSH.example.org",
            format!("{other}{plain}"),
            "`ssh_host =",
        ),
        ("https://wharf.example.org", format!("{other}{plain}"), ""),
    ] {
        let (status, text) = check(base_url, &hosts);
        assert_eq!(status, Some(0), "{text}");
        let warned = text.contains("warning: setting `base_url`: the console at");
        assert_eq!(warned, !setting.is_empty(), "{base_url}: {text}");
        assert!(text.contains(setting), "{text}");
    }
}
