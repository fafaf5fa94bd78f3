//! `ETag`, `If-None-Match` and `If-Match`.

use crate::{start, start_with, uuid};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use wharf_tests::{Answer, Api, small};

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

fn path(id: &str) -> String {
    format!("/api/instance/{id}/")
}

fn rename(api: &Api, id: &str, name: &str, if_match: &str) -> Answer {
    let body = json!({ "name": name });
    api.send_with("PATCH", &path(id), &[("If-Match", if_match)], &body)
        .unwrap()
}

#[test]
fn an_etag_lasts_as_long_as_the_body() {
    let (server, api) = start_with("ready_after_ms = 100");
    let created = api.create(&small("container")).unwrap();
    let id = uuid(&created.body).to_owned();
    assert!(etag(&created).starts_with('"'));
    api.wait_for(&id, "running").unwrap();
    let one = api.instance(&id).unwrap();
    assert_ne!(etag(&one), etag(&created), "the state changed");
    for other in [
        &api.instance(&id).unwrap(),
        &api.instance(one.body["name"].as_str().unwrap()).unwrap(),
    ] {
        assert_eq!(etag(other), etag(&one));
    }
    let list = api.get("/api/instance/").unwrap();
    let page = api.get("/api/instance/?limit=5").unwrap();
    assert_eq!(etag(&list), etag(&page), "equal bodies");
    for (path, tag) in [
        (path(&id), etag(&one)),
        ("/api/instance/".to_owned(), etag(&list)),
    ] {
        let get = |value: &str| {
            api.send_with("GET", &path, &[("If-None-Match", value)], &Value::Null)
                .unwrap()
        };
        for same in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"x\", {tag}"),
            "*".to_owned(),
        ] {
            let answer = get(&same);
            assert_eq!((answer.status, &answer.body), (304, &Value::Null), "{same}");
            assert_eq!(etag(&answer), tag);
        }
        assert_eq!(get("\"other\"").status, 200);
    }
    let changed = rename(&api, &id, "another-name", &etag(&one));
    assert_eq!(changed.status, 200);
    let after = api.instance(&id).unwrap();
    assert_eq!(etag(&changed), etag(&after));
    assert_ne!(etag(&after), etag(&one));
    assert_ne!(etag(&api.get("/api/instance/").unwrap()), etag(&list));
    server.finish().unwrap();
}

#[test]
fn a_change_under_another_etag_is_412_and_changes_nothing() {
    let (server, api) = start();
    let mut machine = small("vm");
    machine["name"] = json!("machine");
    api.create(&machine).unwrap().expect(201).unwrap();
    api.wait_for("machine", "running").unwrap();
    let before = api.instance("machine").unwrap();
    let stale = "\"0123456789abcdef0123456789abcdef\"";
    let weak = format!("W/{}", etag(&before));
    for tag in [stale, &weak, &format!("{stale}, {weak}")] {
        let refused = |method: &str, below: &str, body: &Value| {
            let path = format!("/api/instance/machine/{below}");
            let answer = api.send_with(method, &path, &[("If-Match", tag)], body);
            assert_eq!(answer.unwrap().status, 412, "{method} {below} {tag}");
        };
        refused("PATCH", "", &json!({ "name": "renamed" }));
        refused("PATCH", "", &json!({}));
        refused("POST", "stop/", &Value::Null);
        refused("POST", "add-port/", &json!({ "port": 80 }));
        refused("POST", "remove-port/", &json!({ "port": 80 }));
        refused("DELETE", "", &Value::Null);
        refused("GET", "", &Value::Null);
    }
    assert_eq!(api.instance("machine").unwrap().body, before.body);
    // 404 and the fields come first, the state later.
    let act = |path: &str, tag: &str| {
        let path = format!("/api/instance/{path}");
        api.send_with("POST", &path, &[("If-Match", tag)], &Value::Null)
            .unwrap()
    };
    assert_eq!(act("nothing/stop/", stale).status, 404);
    assert_eq!(act("machine/restart/", stale).status, 412);
    assert_eq!(act("machine/restart/", "*").status, 400);
    assert_eq!(rename(&api, "machine", "x", stale).status, 400);
    let both = format!("{stale}, {}", etag(&before));
    assert_eq!(act("machine/stop/", &both).status, 200);
    assert_eq!(act("machine/restart/", &etag(&before)).status, 412);
    assert_eq!(act("machine/restart/", "*").status, 200);
    let now = etag(&api.instance("machine").unwrap());
    let delete = api.send_with(
        "DELETE",
        "/api/instance/machine/",
        &[("If-Match", &now)],
        &Value::Null,
    );
    assert_eq!(delete.unwrap().status, 204);
    server.finish().unwrap();
}

#[test]
fn headers_that_are_no_entity_tags_are_400_and_named() {
    let (server, api) = start();
    api.small_container().unwrap();
    let list = api.list().unwrap();
    let id = uuid(&list[0]);
    for wrong in ["x", "\"a", "*, \"a\"", "\"a\" \"b\" c"] {
        let answer = rename(&api, id, "renamed", wrong);
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.body["If-Match"].is_array(), "{answer:?}");
        let headers = [("If-None-Match", wrong)];
        let answer = api
            .send_with("GET", "/api/instance/", &headers, &Value::Null)
            .unwrap();
        assert!(answer.status == 400 && answer.body["If-None-Match"].is_array());
    }
    server.finish().unwrap();
}

#[test]
fn of_many_changes_under_one_etag_one_is_made() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    for round in 0..5 {
        let tag = etag(&api.instance(id).unwrap());
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let (api, tag) = (api.clone(), &tag);
                    scope.spawn(move || rename(&api, id, &format!("n-{round}-{n}"), tag).status)
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let count = |status| statuses.iter().filter(|s| **s == status).count();
        assert_eq!((count(200), count(412)), (1, 7), "{statuses:?}");
    }
    server.finish().unwrap();
}

#[test]
fn a_compressed_list_has_a_tag_of_its_own() {
    let (server, api) = start();
    for _ in 0..3 {
        let created = api.small_container().unwrap();
        api.wait_for(uuid(&created), "running").unwrap();
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
