//! HTTP conventions: slashes, methods, content types, sizes, request ids.

use crate::hygiene::send;
use crate::start;
use serde_json::json;
use std::io::Write;
use wharf_tests::until;

#[test]
fn a_missing_slash_is_308_with_method_and_query_kept() {
    let (server, api) = start();
    for (method, path, to) in [
        ("GET", "/api/instance", "/api/instance/"),
        ("POST", "/api/instance", "/api/instance/"),
        ("POST", "/api/instance/a-b/stop", "/api/instance/a-b/stop/"),
        ("GET", "/api/instance/a-b?x=1", "/api/instance/a-b/?x=1"),
    ] {
        let answer = api.raw(method, path, None).unwrap();
        assert_eq!(answer.status, 308, "{answer:?}");
        assert!(
            answer.header("location").unwrap().ends_with(to),
            "{answer:?}"
        );
    }
    server.finish().unwrap();
}

#[test]
fn unknown_paths_are_404_and_wrong_methods_405_with_allow() {
    let (server, api) = start();
    assert_eq!(api.get("/api/nothing/").unwrap().status, 404);
    assert_eq!(api.get("/nothing").unwrap().status, 404);
    let answer = api.get("/api/docs/%ff").unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.body["detail"].is_string(), "{answer:?}");
    for (method, path, allow) in [
        ("DELETE", "/api/instance/", "POST"),
        ("PUT", "/api/instance/a-b/", "PATCH"),
        ("GET", "/api/instance/a-b/stop/", "POST"),
        ("POST", "/api/instance/a-b/stats/", "GET"),
    ] {
        let answer = api.raw(method, path, None).unwrap();
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        assert!(
            answer.header("allow").unwrap().contains(allow),
            "{answer:?}"
        );
        assert!(answer.body["detail"].is_string());
    }
    server.finish().unwrap();
}

#[test]
fn each_route_has_the_methods_of_the_document_and_no_others() {
    let (server, api) = start();
    let document = api.get("/api/openapi.json").unwrap().expect(200).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        let mut expected: Vec<String> = item
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "parameters")
            .map(|method| method.to_uppercase())
            .collect();
        if expected.iter().any(|method| method == "GET") {
            expected.push("HEAD".to_owned());
        }
        expected.sort();
        let path = path.replace("{uuid}", "no-such-name");
        let answer = api.raw("OPTIONS", &path, None).unwrap();
        assert_eq!(answer.status, 405, "{path}: {answer:?}");
        let allow = answer.header("allow").unwrap();
        let mut allowed: Vec<_> = allow.split(',').map(|m| m.trim().to_owned()).collect();
        allowed.sort();
        assert_eq!(allowed, expected, "{path}");
    }
    server.finish().unwrap();
}

#[test]
fn bodies_are_json_objects_of_at_most_64_kib() {
    let (server, api) = start();
    let post = |content_type: &str, bytes: &[u8]| {
        api.raw("POST", "/api/instance/", Some((content_type, bytes)))
            .unwrap()
    };
    assert_eq!(post("text/plain", b"{}").status, 415);
    assert_eq!(post("application/json; charset=utf-8", b"{}").status, 400);
    for wrong in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\"x\"",
        b"{} {}",
        b"{\"a\":1,}",
        b"\xff",
    ] {
        let answer = post("application/json", wrong);
        assert_eq!(answer.status, 400, "{wrong:?}: {answer:?}");
    }
    let large = serde_json::to_vec(&json!({ "name": "x".repeat(64 * 1024) })).unwrap();
    assert_eq!(post("application/json", &large).status, 413);
    assert_eq!(
        post("application/json", &[b' '].repeat(60 * 1024)).status,
        400
    );
    server.finish().unwrap();
}

#[test]
fn every_answer_has_a_request_id_from_the_caller_if_valid() {
    let (server, api) = start();
    let first = api.get("/api/instance/").unwrap();
    let second = api.get("/api/nothing/").unwrap();
    let id = |a: &wharf_tests::Answer| a.header("x-request-id").unwrap().to_owned();
    assert_ne!(id(&first), id(&second));
    let raw = |id: &str| {
        let request = format!(
            "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: {id}\r\nConnection: close\r\n\r\n"
        );
        send(&server, request.as_bytes()).text().to_lowercase()
    };
    assert!(raw("my-trace-1").contains("x-request-id: my-trace-1\r\n"));
    assert!(!raw("a b\tc").contains("x-request-id: a b"));
    until("the log has it", || {
        Ok(server.log().contains("my-trace-1").then_some(()))
    })
    .unwrap();
    server.finish().unwrap();
}

#[test]
fn health_and_documentation_need_no_key() {
    let (server, _) = start();
    let anyone = wharf_tests::Api::new(server.base_url(), "");
    for path in ["/healthz", "/readyz", "/api/openapi.json", "/api/docs/"] {
        let answer = anyone.get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let openapi = anyone.get("/api/openapi.json").unwrap().body;
    assert!(openapi["openapi"].as_str().unwrap().starts_with("3.1"));
    server.finish().unwrap();
}

#[test]
fn the_log_has_requests_of_clients_that_disconnect() {
    let (server, api) = crate::start_with("ready_after_ms = 1500");
    let created = api.small_container().unwrap();
    let id = crate::uuid(&created);
    api.wait_for(id, "running").unwrap();
    api.act(id, "stop").unwrap().expect(200).unwrap();
    let request = format!(
        "POST /api/instance/{id}/restart/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         x-request-id: went-away\r\n\r\n",
        api.key()
    );
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    until("the request has begun", || {
        let state = api.instance(id)?.expect(200)?["state"] != "shut_off";
        Ok(state.then_some(()))
    })
    .unwrap();
    drop(stream);
    until("the log has it", || {
        let log = server.log();
        let mut lines = log.lines().filter(|line| line.contains("went-away"));
        Ok(lines
            .any(|line| line.contains("went away before"))
            .then_some(()))
    })
    .unwrap();
    // The restart completes without the client.
    api.wait_for(id, "running").unwrap();
    server.finish().unwrap();
}

#[test]
fn requests_in_progress_complete_at_shutdown() {
    let (mut server, api) = crate::start_with("ready_after_ms = 1500");
    let created = api.small_container().unwrap();
    api.wait_for(crate::uuid(&created), "running").unwrap();
    api.act(crate::uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    // The restart waits for the instance, which takes longer than the signal.
    let restart = {
        let (api, id) = (api.clone(), crate::uuid(&created).to_owned());
        std::thread::spawn(move || api.act(&id, "restart"))
    };
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(server.terminate().unwrap().success());
    let answer = restart.join().unwrap().unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    server.run().unwrap();
    server.finish().unwrap();
}
