//! Shares: the visitors of the page of an instance, and of ports inside it.

use super::{
    DOMAIN, NAVIGATION, PAGES, Visit, ask, enter, get, label, page, port, serve, signed_in, start,
};
use crate::sign_in::ConsoleBrowser;
use crate::terminal::SshServer;
use crate::{Expected, free_port, has, kill, made, uuid, wait_until, with};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::Read;
use wharf_tests::{
    Answer, Api, PageServer, Server, Tunnel, WITHOUT_RATES, lasting_node, simulated_node,
};

pub fn shares(instance: &Value) -> String {
    format!("/api/instance/{}/share/", uuid(instance))
}

pub fn share(api: &Api, instance: &Value, body: &Value) -> Answer {
    api.send("POST", &shares(instance), body).unwrap()
}

/// An instance for a visit of a share.
pub fn at(share: &Value) -> Value {
    json!({ "webapp_url": share["url"] })
}

/// Whether a browser is let in to a page.
fn comes_in(browser: &ConsoleBrowser, page: &Value) -> bool {
    let asked = get(
        port(page),
        &format!("{}.{DOMAIN}", label(page)),
        "/",
        NAVIGATION,
    );
    let entered = enter(browser, &asked);
    assert!(matches!(entered.status, 200 | 404), "{entered:?}");
    entered.status == 200
}

/// The address of a visitor is that which this machine names.
const PROXY: &str = "trusted_proxies = [\"127.0.0.1\"]\n";

/// A server with an instance whose ports are reached, and a web server at one of them.
pub struct Inside {
    pub server: Server,
    pub ann: Api,
    pub instance: Value,
    pub port: u16,
    ssh: SshServer,
    pub page: PageServer,
}

pub fn inside(pages: &str) -> Inside {
    let node = simulated_node("one", "");
    inside_of(&node, pages, &with("container", json!({ "name": "demo" })))
}

fn inside_of(node: &str, pages: &str, body: &Value) -> Inside {
    let top = format!("{PROXY}{PAGES}{pages}{WITHOUT_RATES}");
    let (server, ann) = crate::start_on(&top, node);
    let instance = made(&ann, body);
    let ssh = SshServer::of(&instance).unwrap();
    let port = free_port();
    let page = PageServer::start(port);
    // The owner's first connection notes the host key.
    drop(Tunnel::open(&ann, uuid(&instance), port).unwrap());
    Inside {
        server,
        ann,
        instance,
        port,
        ssh,
        page,
    }
}

#[test]
fn visitors_of_a_port_share_no_connection_with_the_tunnels_of_its_owner() {
    let one = inside("");
    let logins = one.ssh.logins();
    let shared = share(
        &one.ann,
        &one.instance,
        &json!({ "port": one.port, "access": "owner" }),
    );
    let ann = signed_in(&one.server, "ann@example.com");
    has(
        Visit::begin(&ann, &at(&shared.is(201))).get("/").body,
        "GET / ",
    );
    // A visitor who reads nothing holds up the other channels of a connection.
    assert_eq!(one.ssh.logins(), logins + 1);
    drop(Tunnel::open(&one.ann, uuid(&one.instance), one.port).unwrap());
    assert_eq!(one.ssh.logins(), logins + 1);
}

#[test]
fn a_lost_connection_to_a_port_is_no_end_of_its_answer() {
    let one = inside("");
    let body = json!({ "port": one.port, "access": "owner" });
    let shared = share(&one.ann, &one.instance, &body).is(201);
    let ann = signed_in(&one.server, "ann@example.com");
    let visit = Visit::begin(&ann, &at(&shared));
    let mut stream = ask(visit.port, &visit.host, "/stream", &visit.headers());
    let mut answer = Vec::new();
    while !answer.ends_with(b"data: x") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    drop(one.ssh);
    drop(stream.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    has(answer.to_lowercase(), "transfer-encoding: chunked");
    assert!(!answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
}

#[test]
fn a_page_is_shared_with_named_users_or_all_of_them() {
    let (server, ann, ports) = start();
    let made = page(&ann, "marimo", "demo");
    let _page = serve(ports);
    let [bob, carol] =
        ["bob@example.com", "carol@example.com"].map(|user| signed_in(&server, user));
    assert!(!comes_in(&bob, &made));
    // An address of no user is kept like any other.
    let users = json!(["Bob@Example.com", "nobody@example.com", "bob@example.com"]);
    let shared = share(&ann, &made, &json!({ "access": "users", "users": users })).is(201);
    assert_eq!(
        shared["users"],
        json!(["bob@example.com", "nobody@example.com"])
    );
    assert_eq!(
        (&shared["id"], &shared["url"]),
        (&json!("page"), &made["webapp_url"])
    );
    let visit = Visit::begin(&bob, &made);
    // The page takes a token, so that no visitor learns the password from it.
    let seen = visit.get("/").body;
    has(seen.clone(), "Bearer ");
    let password = made["original_service_password"].as_str().unwrap();
    assert!(!seen.contains(password), "{seen}");
    assert!(!comes_in(&carol, &made));
    // A user who comes later has the share of the address.
    assert!(comes_in(&signed_in(&server, "nobody@example.com"), &made));
    let path = format!("{}page/", shares(&made));
    let change = |body: Value| ann.send("PATCH", &path, &body).is(200);
    assert_eq!(change(json!({ "access": "signed_in" }))["users"], json!([]));
    assert!(comes_in(&bob, &made) && comes_in(&carol, &made));
    change(json!({ "access": "owner" }));
    assert_eq!(visit.get("/").status, 303);
    assert!(!comes_in(&bob, &made) && comes_in(&signed_in(&server, "ann@example.com"), &made));
    change(json!({ "access": "users", "users": ["carol@example.com"] }));
    assert!(!comes_in(&bob, &made) && comes_in(&carol, &made));
    ann.send("DELETE", &path, &Value::Null).is(204);
    ann.send("DELETE", &path, &Value::Null).is(404);
    assert!(!comes_in(&carol, &made));
    assert_eq!(
        ann.send("GET", &shares(&made), &Value::Null).is(200),
        json!([])
    );
    // Nobody without an account comes in.
    assert_eq!(get(visit.port, &visit.host, "/", "").status, 401);
}

#[test]
fn a_port_inside_has_a_page_of_its_own_for_its_owner_and_others() {
    let one = inside("");
    let body = json!({ "port": one.port, "access": "owner" });
    let shared = share(&one.ann, &one.instance, &body).is(201);
    assert_eq!(label(&at(&shared)), format!("demo-{}", one.port));
    let [ann, bob] =
        ["ann@example.com", "bob@example.com"].map(|user| signed_in(&one.server, user));
    let visit = Visit::begin(&ann, &at(&shared));
    let seen = visit.get("/x?y=1");
    assert!(seen.body.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{seen:?}");
    assert!(
        !seen.body.to_lowercase().contains("\r\nauthorization:"),
        "{seen:?}"
    );
    assert!(!comes_in(&bob, &at(&shared)));
    // The password of the instance is for the page of the flavor.
    let password = one.instance["original_service_password"].as_str().unwrap();
    let pair = STANDARD.encode(format!("user:{password}"));
    let basic = format!("Authorization: Basic {pair}\r\n");
    assert_eq!(get(visit.port, &visit.host, "/", &basic).status, 401);
    let path = format!("{}{}/", shares(&one.instance), one.port);
    let body = json!({ "access": "users", "users": ["bob@example.com"] });
    one.ann.send("PATCH", &path, &body).is(200);
    let of_bob = Visit::begin(&bob, &at(&shared));
    // The server inside may have a sign-in of its own.
    let own = format!("{}Authorization: Basic eDp5\r\n", of_bob.headers());
    has(
        &get(of_bob.port, &of_bob.host, "/", &own).body,
        "Basic eDp5",
    );
    // The address follows a rename, and the earlier one leads there.
    let renamed = json!({ "name": "other" });
    let instance = format!("/api/instance/{}/", uuid(&one.instance));
    one.ann.send("PATCH", &instance, &renamed).is(200);
    let listed = one
        .ann
        .send("GET", &shares(&one.instance), &Value::Null)
        .is(200);
    assert_eq!(label(&at(&listed[0])), format!("other-{}", one.port));
    let moved = of_bob.get("/x");
    let to = format!("{}x", listed[0]["url"].as_str().unwrap());
    assert_eq!((moved.status, moved.header("location")), (303, Some(&*to)));
    assert_eq!(Visit::begin(&bob, &at(&listed[0])).get("/").status, 200);
}

#[test]
fn a_share_goes_on_after_a_stop_a_move_a_resize_and_a_kill_and_ends_with_its_instance() {
    let (one, _engine) = lasting_node("one", "").unwrap();
    let (two, _other) = lasting_node("two", "").unwrap();
    let two = two.replace("203.0.113.0/28", "203.0.113.16/28");
    let nodes = [one, two].map(|node| format!("{node}cluster = \"east\"\n"));
    let mut one = inside_of(
        &nodes.concat(),
        "",
        &with("container", json!({ "name": "demo" })),
    );
    let body = json!({ "port": one.port, "access": "users", "users": ["bob@example.com"] });
    let shared = share(&one.ann, &one.instance, &body).is(201);
    let bob = signed_in(&one.server, "bob@example.com");
    let visit = Visit::begin(&bob, &at(&shared));
    one.ann.act(uuid(&one.instance), "stop").is(200);
    let stopped = visit.get("/");
    assert_eq!(stopped.status, 503, "{stopped:?}");
    assert!(!stopped.body.contains("/instances/"), "{stopped:?}");
    // One of the two nodes has it.
    let to = |node: &&str| one.server.cli(&["move", uuid(&one.instance), node]).is_ok();
    assert!(["one", "two"].iter().any(to));
    wait_until("it has moved", || {
        let path = format!("/api/event/?after=0&instance={}", uuid(&one.instance));
        let events = one.ann.get(&path)?.body.to_string();
        Ok(events.contains("\"moved\"").then_some(()))
    });
    one.ann.act(uuid(&one.instance), "restart").is(200);
    let moved = one.ann.wait_for(uuid(&one.instance), "running").unwrap();
    drop(one.ssh);
    one.ssh = SshServer::of(&moved).unwrap();
    assert_eq!(visit.get("/").status, 200);
    let instance = format!("/api/instance/{}/", uuid(&one.instance));
    let larger = json!({ "n_vcpus": 2 });
    one.ann.send("PATCH", &instance, &larger).is(200);
    assert_eq!(visit.get("/").status, 200);
    let ann = kill(&mut one.server, &one.ann);
    ann.wait_for(uuid(&one.instance), "running").unwrap();
    let listed = ann
        .send("GET", &shares(&one.instance), &Value::Null)
        .is(200);
    assert_eq!(listed[0]["users"], json!(["bob@example.com"]));
    let now = port(&at(&listed[0]));
    assert_eq!(get(now, &visit.host, "/", &visit.headers()).status, 200);
    ann.delete(uuid(&one.instance)).is(204);
    assert_eq!(get(now, &visit.host, "/", &visit.headers()).status, 303);
}

#[test]
fn a_virtual_machine_shares_a_port() {
    let one = inside_of(
        &simulated_node("one", ""),
        "",
        &with("vm", json!({ "name": "machine" })),
    );
    let body = json!({ "port": one.port, "access": "signed_in" });
    let shared = share(&one.ann, &one.instance, &body).is(201);
    let bob = signed_in(&one.server, "bob@example.com");
    assert_eq!(Visit::begin(&bob, &at(&shared)).get("/").status, 200);
}

#[test]
fn only_a_port_is_public_and_only_where_the_operator_allows_it() {
    let one = inside("");
    let body = json!({ "port": one.port, "access": "public" });
    let refused = share(&one.ann, &one.instance, &body).is(400);
    has(&refused["access"], "`public = true` in `[pages]`");
    one.server.finish().unwrap();

    let one = inside("public = true\n");
    let body = json!({ "port": one.port, "access": "public" });
    let shared = at(&share(&one.ann, &one.instance, &body).is(201));
    let seen = get(
        port(&shared),
        &format!("{}.{DOMAIN}", label(&shared)),
        "/",
        "",
    );
    assert_eq!(
        (seen.status, seen.header("x-robots-tag")),
        (200, Some("noindex")),
        "{seen:?}"
    );
    let made = page(&one.ann, "marimo", "page");
    let refused = share(&one.ann, &made, &json!({ "access": "public" })).is(400);
    has(&refused["access"], "cannot be public");
    one.server
        .cli(&["suspend", "--user", "ann@example.com", "--reason", "x"])
        .unwrap();
    let asked = get(
        port(&shared),
        &format!("{}.{DOMAIN}", label(&shared)),
        "/",
        NAVIGATION,
    );
    assert_eq!(asked.status, 303, "{asked:?}");
}

#[test]
fn an_owner_learns_of_each_session_once_and_of_few_in_a_day() {
    let (server, ann, _) = start();
    let made = page(&ann, "marimo", "demo");
    let body = json!({ "access": "users", "users": ["bob@example.com"] });
    share(&ann, &made, &body).is(201);
    let visits = || {
        let path = format!("/api/event/?instance={}&limit=1000", uuid(&made));
        let events = ann.send("GET", &path, &Value::Null).is(200);
        let events = events.as_array().unwrap().clone().into_iter();
        events
            .filter(|event| event["type"] == "page-visited")
            .collect::<Vec<_>>()
    };
    let tag = || {
        let read = ann.get(&format!("/api/instance/{}/", uuid(&made)));
        read.unwrap().header("etag").unwrap().to_owned()
    };
    let bob = signed_in(&server, "bob@example.com");
    assert!(comes_in(&signed_in(&server, "ann@example.com"), &made));
    assert_eq!(visits().len(), 0);
    let before = tag();
    for _ in 0..3 {
        assert!(comes_in(&bob, &made));
    }
    // A visit is no change of the instance.
    assert_eq!(tag(), before);
    let seen = visits();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        seen[0]["message"],
        "bob@example.com opened its page, which you share."
    );
    // Visitors write no more than a few, whatever they do.
    let path = format!("{}page/", shares(&made));
    ann.send("PATCH", &path, &json!({ "access": "signed_in" }))
        .is(200);
    for number in 0..22 {
        let other = signed_in(&server, &format!("user-{number}@example.com"));
        assert!(comes_in(&other, &made));
    }
    assert_eq!(visits().len(), 20);
}

#[test]
fn what_cannot_be_shared_is_refused_with_a_reason() {
    let (server, ann, _) = start();
    let made = page(&ann, "marimo", "demo");
    let refused = |body: Value, field: &str, words: &str| {
        let answer = share(&ann, &made, &body).is(400);
        has(&answer[field], words);
    };
    for (body, field, words) in [
        (json!({}), "access", "required"),
        (json!({ "access": "all" }), "access", "must be"),
        (json!({ "access": "users" }), "users", "at least one"),
        (
            json!({ "access": "users", "users": [] }),
            "users",
            "at least one",
        ),
        (
            json!({ "access": "users", "users": ["bob"] }),
            "users",
            "e-mail",
        ),
        (
            json!({ "access": "owner", "users": ["a@b.example"] }),
            "users",
            "needs",
        ),
        (
            json!({ "access": "owner", "port": 0 }),
            "port",
            "between 1 and 65535",
        ),
        (json!({ "access": "owner", "port": 22 }), "port", "SSH"),
        (
            json!({ "access": "owner", "expires_at": "soon" }),
            "expires_at",
            "ISO",
        ),
        (
            json!({ "access": "owner", "expires_at": "2020-01-01" }),
            "expires_at",
            "future",
        ),
    ] {
        refused(body, field, words);
    }
    let many: Vec<_> = (0..51).map(|n| format!("u{n}@example.com")).collect();
    refused(
        json!({ "access": "users", "users": many }),
        "users",
        "at most 50",
    );
    for port in 1000..1050 {
        share(&ann, &made, &json!({ "access": "owner", "port": port })).is(201);
    }
    refused(
        json!({ "access": "owner", "port": 1000 }),
        "port",
        "already",
    );
    refused(
        json!({ "access": "owner", "port": 1050 }),
        "port",
        "at most 50",
    );
    // Nobody else learns of an instance or its shares.
    let bob = server.user("bob@example.com").unwrap();
    share(&bob, &made, &json!({ "access": "owner" })).is(404);
    let path = format!("{}1000/", shares(&made));
    for method in ["PATCH", "DELETE"] {
        let body = if method == "PATCH" {
            json!({ "access": "owner" })
        } else {
            Value::Null
        };
        bob.send(method, &path, &body).is(404);
        for wrong in ["01000", "0", "x", "70000"] {
            ann.send(method, &format!("{}{wrong}/", shares(&made)), &body)
                .is(404);
        }
    }
    // Each change has its audit record with the port.
    ann.send("DELETE", &path, &Value::Null).is(204);
    let audit = ann
        .send("GET", "/api/audit/?order=newest&limit=1", &Value::Null)
        .is(200);
    assert_eq!(
        (&audit[0]["operation"], &audit[0]["subject"]),
        (&json!("share.remove"), &json!("1000"))
    );
}

#[test]
fn without_pages_nothing_is_shared() {
    let (_server, ann) = crate::start();
    let made = ann.small_container().unwrap();
    let body = json!({ "port": 8000, "access": "owner" });
    let refused = share(&ann, &made, &body).is(400);
    has(&refused, "`[pages]`");
}
