//! The way in to a page: from its host to the console, and back with a ticket.

use super::{DOMAIN, NAVIGATION, Visit, enter, get, page, port, serve, signed_in, start, start_on};
use crate::{Expected, has, uuid};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wharf_tests::{lasting_node, simulated_node};

#[test]
fn the_owner_comes_in_without_a_second_password() {
    let (server, ann, ports) = start();
    let made = page(&ann, "jupyterlab", "demo");
    let _page = serve(ports);
    let browser = signed_in(&server, "ann@example.com");
    let visit = Visit::begin(&browser, &made);
    let seen = visit.get("/lab?x=1");
    assert_eq!(seen.status, 200, "{seen:?}");
    assert!(
        seen.body.starts_with("GET /lab?x=1 HTTP/1.1\r\n"),
        "{seen:?}"
    );
    let token = seen.body.to_lowercase();
    let token = token
        .split("\r\n")
        .find_map(|line| line.strip_prefix("authorization: token "));
    let token = token.unwrap().to_owned();
    assert_eq!(token.len(), 43);
    assert!(!seen.body.contains("__Host-wharf"), "{seen:?}");
    // Neither the token nor a ticket or a cookie is in the log, and the database has them encrypted or not.
    let stored = String::from_utf8_lossy(&server.data_and_log().unwrap()).to_lowercase();
    let cookie = visit.cookie.split_once('=').unwrap().1.to_lowercase();
    for secret in [&token, &cookie] {
        assert!(!stored.contains(secret.as_str()), "{secret}");
    }
    assert!(!stored.contains("ticket=") && !stored.contains("/lab?x=1"));
    // The access log and the metrics have the request.
    let log = server.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("route=\"page\""))
        .unwrap();
    has(line, "page=\"demo\" status=200");
    has(line, "user=1 client=127.0.0.1");
}

#[test]
fn each_flavor_gets_the_credential_that_it_takes() {
    let (server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let browser = signed_in(&server, "ann@example.com");
    let seen = Visit::begin(&browser, &made).get("/").body;
    let (_, token) = seen.split_once("Bearer ").unwrap();
    let password = made["original_service_password"].as_str().unwrap();
    assert!(token.lines().next().unwrap().len() >= 32 && !seen.contains(password));
}

#[test]
fn an_image_of_the_operators_gets_the_credential_of_its_setting() {
    for (auth, expected) in [
        ("none", None),
        ("basic", Some("Basic")),
        ("bearer", Some("Bearer")),
    ] {
        let flavor = format!(
            "[[flavor]]\nname = \"reports\"\nimage = \"localhost/team/reports:1\"\nweb_port = 8000\n\
             web_auth = \"{auth}\"\n"
        );
        let (server, ann, ports) = start_on(&format!("{flavor}{}", simulated_node("one", "")));
        let made = page(&ann, "reports", "demo");
        let _page = serve(ports);
        let browser = signed_in(&server, "ann@example.com");
        let seen = Visit::begin(&browser, &made).get("/");
        assert_eq!(seen.status, 200, "{seen:?}");
        let mut lines = seen.body.lines().filter_map(|line| line.split_once(": "));
        let given = lines.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let password = made["original_service_password"].as_str().unwrap();
        let expected = expected.map(|scheme| match scheme {
            "Basic" => format!("Basic {}", STANDARD.encode(format!("user:{password}"))),
            scheme => format!("{scheme} {password}"),
        });
        assert_eq!(given.map(|(_, value)| value.to_owned()), expected);
    }
}

#[test]
fn only_the_owner_comes_in_and_nobody_learns_which_pages_exist() {
    let (server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let (port, host) = (port(&made), format!("demo.{DOMAIN}"));
    let bob = signed_in(&server, "bob@example.com");
    let asked = get(port, &host, "/", NAVIGATION);
    let none = get(port, &format!("none.{DOMAIN}"), "/", NAVIGATION);
    assert_eq!((asked.status, none.status), (303, 303));
    let refused = [&asked, &none].map(|asked| enter(&bob, asked).is(404));
    assert_eq!(refused[0], refused[1]);
    // A program learns no more.
    assert_eq!(get(port, &host, "/", "").status, 401);
    assert_eq!(get(port, &format!("none.{DOMAIN}"), "/", "").status, 401);
    // Nobody who is signed out comes in, and a key of the interface opens no page.
    let stranger = crate::sign_in::ConsoleBrowser::new(&server);
    enter(&stranger, &asked).is(401);
    let key = format!("Authorization: Bearer {}\r\n", ann.key());
    assert_eq!(get(port, &host, "/", &key).status, 401);
}

#[test]
fn a_person_is_sent_to_a_path_of_the_page_only() {
    let (server, _, _) = start();
    let browser = signed_in(&server, "ann@example.com");
    for to in [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "lab",
        "/a b",
    ] {
        let body = json!({ "host": "demo", "state": "x", "to": to });
        let refused = browser.send("POST", "/auth/page/", &body).is(400);
        assert!(refused["to"].is_array(), "{refused}");
    }
}

#[test]
fn a_program_comes_in_with_the_password_of_the_instance() {
    let (_server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let (port, host) = (port(&made), format!("demo.{DOMAIN}"));
    let with = |password: &str| {
        let pair = STANDARD.encode(format!("user:{password}"));
        get(
            port,
            &host,
            "/",
            &format!("Authorization: Basic {pair}\r\n"),
        )
        .status
    };
    let password = made["original_service_password"].as_str().unwrap();
    assert_eq!(with(password), 200);
    assert_eq!(with("wrong"), 401);
    // Guesses are limited, and the owner's program goes on.
    let limited = (0..300)
        .map(|n| with(&format!("guess {n}")))
        .find(|status| *status == 429);
    assert_eq!(limited, Some(429));
    assert_eq!(with(password), 200);
}

/// The console and the interface answer at no host that instances have.
#[test]
fn the_console_never_answers_below_the_domain_of_pages() {
    let (server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let console: u16 = server
        .base_url()
        .rsplit(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    for host in [
        DOMAIN,
        "demo.apps.localhost",
        "DEMO.apps.localhost",
        "none.apps.localhost.",
    ] {
        for path in ["/", "/api/instance/", "/auth/options/", "/healthz"] {
            let key = format!("Authorization: Bearer {}\r\n", ann.key());
            assert_eq!(get(console, host, path, &key).status, 421, "{host} {path}");
        }
    }
    // The gateway has neither, and the domain itself is no page.
    let browser = signed_in(&server, "ann@example.com");
    let visit = Visit::begin(&browser, &made);
    assert!(
        visit
            .get("/api/instance/")
            .body
            .starts_with("GET /api/instance/ ")
    );
    for host in ["localhost", "127.0.0.1", DOMAIN, "a.demo.apps.localhost"] {
        let refused = get(port(&made), host, "/api/instance/", &visit.headers());
        assert!(
            refused.status >= 400 && refused.status < 500,
            "{host}: {refused:?}"
        );
    }
}

#[test]
fn a_renamed_page_leads_to_its_new_address() {
    let (server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let browser = signed_in(&server, "ann@example.com");
    let visit = Visit::begin(&browser, &made);
    ann.patch(uuid(&made), &json!({ "name": "other" })).is(200);
    let moved = visit.get("/lab?x=1");
    let to = format!("http://other.{DOMAIN}:{}/lab?x=1", visit.port);
    assert_eq!(
        (moved.status, moved.header("location")),
        (303, Some(to.as_str())),
        "{moved:?}"
    );
    // A browser that was not there before goes there at once.
    let asked = get(visit.port, &visit.host, "/lab?x=1", NAVIGATION);
    assert_eq!(enter(&browser, &asked).is(200)["url"], Value::from(to));
}

#[test]
fn a_page_that_does_not_run_says_so_to_its_owner() {
    let (server, ann, _) = start();
    let made = page(&ann, "marimo", "demo");
    let browser = signed_in(&server, "ann@example.com");
    let visit = Visit::begin(&browser, &made);
    let unreachable = visit.get("/");
    assert_eq!(unreachable.status, 502, "{unreachable:?}");
    ann.act(uuid(&made), "stop").is(200);
    let html = format!("{}Accept: text/html\r\n", visit.headers());
    let stopped = get(visit.port, &visit.host, "/", &html);
    assert_eq!(stopped.status, 503, "{stopped:?}");
    has(&stopped.body, format!("/instances/{}", uuid(&made)));
    ann.delete(uuid(&made)).is(204);
    assert_eq!(visit.get("/").status, 303);
}

#[test]
fn a_session_opens_its_pages_after_a_restart_of_the_server() {
    let (node, _engine) = lasting_node("one", "").unwrap();
    let (mut server, ann, ports) = start_on(&node);
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let browser = signed_in(&server, "ann@example.com");
    let mut visit = Visit::begin(&browser, &made);
    server.terminate().unwrap();
    server.run().unwrap();
    let again = server.again(&ann).wait_for(uuid(&made), "running").unwrap();
    visit.port = port(&again);
    assert_eq!(visit.get("/").status, 200);
    // The key of the cookies follows the key of the secrets.
    server.cli(&["secrets", "rotate"]).unwrap();
    assert_eq!(visit.get("/").status, 303);
}
