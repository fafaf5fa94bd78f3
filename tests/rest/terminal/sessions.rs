//! Terminals that a session of the console opens.

use super::ends::ends;
use super::{SshServer, open, start};
use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, uuid};
use serde_json::{Value, json};
use wharf_tests::{Refused, Server, Terminal, Tunnel};

/// The words about a session or key that is not valid.
const INVALID: &str = "not valid any more";

fn signed_in(server: &Server) -> ConsoleBrowser {
    let mut browser = ConsoleBrowser::new(server);
    browser.sign_in(PASSWORD);
    browser
}

/// Opens a terminal as a page of an origin does. A browser sends its `Origin` with each WebSocket.
fn from(
    server: &Server,
    browser: &ConsoleBrowser,
    headers: &[(&'static str, &str)],
    (instance, query): (&Value, &str),
) -> Result<Terminal, Refused> {
    let headers = [headers, &[("Cookie", browser.cookie.as_str())]].concat();
    let query = browser.ticket(query);
    Terminal::try_open_from(server.base_url(), &headers, uuid(instance), &query).unwrap()
}

fn of(server: &Server, browser: &ConsoleBrowser, instance: &Value, query: &str) -> Terminal {
    let origin = [("Origin", server.base_url())];
    let mut terminal = from(server, browser, &origin, (instance, query)).unwrap();
    terminal.wait_for_from(0, "ready> ").unwrap();
    terminal
}

#[test]
fn a_terminal_ends_with_the_session_that_opened_it() {
    let (server, key, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let first = ConsoleBrowser::accepted(&server, ANN);
    let [second, third] = [(); 2].map(|()| signed_in(&server));
    let mut terminals = [&first, &second, &third].map(|b| of(&server, b, &instance, ""));
    let mut of_key = open(&key, &instance);

    let session = format!("?session={}", terminals[0].session);
    let mut again = of(&server, &first, &instance, &session);
    assert_eq!(again.session, terminals[0].session);
    assert_eq!(terminals[0].end().unwrap().1, Some(4000));
    // Another session of the user does not attach.
    let other = of(&server, &second, &instance, &session);
    assert_ne!(other.session, again.session);
    drop(other);

    let out = first.send("POST", "/auth/sign-out/", &Value::Null);
    out.is(204);
    ends(&mut again, INVALID, 1008);
    terminals[1].run("size", "80 24").unwrap();

    let body = json!({ "current": PASSWORD, "new": "another password" });
    third.send("POST", "/auth/password/", &body).is(204);
    ends(&mut terminals[1], INVALID, 1008);
    terminals[2].run("size", "80 24").unwrap();

    let everywhere = third.send("POST", "/auth/sign-out-everywhere/", &Value::Null);
    everywhere.is(204);
    ends(&mut terminals[2], INVALID, 1008);
    of_key.run("size", "80 24").unwrap();
}

#[test]
fn all_terminals_of_a_user_end_when_the_user_is_disabled() {
    let (server, key, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let mut of_session = of(&server, &browser, &instance, "");
    let mut of_key = open(&key, &instance);
    server.cli(&["user", "disable", ANN]).unwrap();
    ends(&mut of_session, INVALID, 1008);
    ends(&mut of_key, INVALID, 1008);
    // The instance is not touched, and its owner opens terminals again later.
    server.cli(&["user", "enable", ANN]).unwrap();
    drop(open(&key, &instance));
}

#[test]
fn a_page_elsewhere_opens_no_terminal_and_no_tunnel_with_the_cookie() {
    let (server, key, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let at = (&instance, "");
    let tunnel = |headers: &[(&'static str, &str)]| {
        let headers = [headers, &[("Cookie", browser.cookie.as_str())]].concat();
        let query = browser.ticket("?port=22");
        Tunnel::try_open_from(server.base_url(), &headers, uuid(&instance), &query).unwrap()
    };
    for headers in [
        &[][..],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        // A page of an instance is on another port of the host.
        &[("Origin", "http://127.0.0.1:30000")],
        &[("Sec-Fetch-Site", "same-site")],
    ] {
        let terminal = from(&server, &browser, headers, at).err();
        for (what, refused) in [("terminal", terminal), ("tunnel", tunnel(headers).err())] {
            let refused = refused.unwrap_or_else(|| panic!("{headers:?} opened a {what}"));
            assert_eq!(refused.status, 403, "{headers:?} {what}");
            assert!(refused.body["detail"].is_string(), "{}", refused.body);
        }
    }
    let records = key.get("/api/audit/").is(200).to_string();
    for operation in ["terminal.open", "tunnel.open"] {
        assert!(!records.contains(operation), "{records}");
    }
    let fetch = [("Sec-Fetch-Site", "same-origin")];
    drop(from(&server, &browser, &fetch, at).unwrap());
    let opened = tunnel(&[("Origin", server.base_url())]);
    drop(opened.unwrap_or_else(|refused| panic!("{refused:?}")));
}
