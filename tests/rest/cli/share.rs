//! `wharf share`, and `wharf open` with a port.

use crate::{Expected, has, start_under, with};
use serde_json::{Value, json};
use wharf_tests::Shell;

#[test]
fn pages_and_ports_are_shared_listed_opened_and_taken_back() {
    let pages = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";
    let (server, api) = start_under(pages, "");
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let body = with("container", json!({ "flavor": "marimo", "name": "demo" }));
    api.create(&body).is(201);
    api.wait_for("demo", "running").unwrap();
    let shown = shell
        .ok(&[
            "share",
            "add",
            "demo",
            "--with",
            "Bob@example.com,carol@example.com",
        ])
        .unwrap();
    has(&shown, "bob@example.com,carol@example.com");
    has(&shown, "http://demo.apps.localhost:");
    let timed = [
        "share",
        "add",
        "demo",
        "--port",
        "8000",
        "--signed-in",
        "--expires",
        "7d",
    ];
    has(shell.ok(&timed).unwrap(), "all users");
    shell
        .ok(&["share", "add", "demo", "--port", "9000"])
        .unwrap();
    let shares = api
        .send("GET", "/api/instance/demo/share/", &Value::Null)
        .is(200);
    assert!(
        shares[0]["expires_at"].is_null() && shares[1]["expires_at"].is_string(),
        "{shares}"
    );
    assert_eq!(shares[2]["access"], "owner");
    let path = "/api/instance/demo/share/";
    shell
        .json(&["share", "ls", "demo"], "GET", path, 200)
        .unwrap();
    let listed = shell.ok(&["share", "ls", "demo"]).unwrap();
    for part in [
        "page",
        "8000",
        "you alone",
        "http://demo-9000.apps.localhost:",
    ] {
        has(&listed, part);
    }
    let link = shell.ok(&["open", "demo", "--port", "8000"]).unwrap();
    assert_eq!(link.trim(), shares[1]["url"].as_str().unwrap());
    shell
        .ok(&["share", "rm", "demo", "--port", "8000"])
        .unwrap();
    shell.ok(&["share", "rm", "demo"]).unwrap();
    assert_eq!(shell.run(&["share", "rm", "demo"]).unwrap().code, Some(3));
    let none = shell.run(&["open", "demo", "--port", "8000"]).unwrap();
    has(&none.stderr, "wharf share add demo --port 8000");
    let public = ["share", "add", "demo", "--port", "8000", "--public"];
    has(shell.run(&public).unwrap().stderr, "public = true");
    let both = ["share", "add", "demo", "--public", "--signed-in"];
    assert_eq!(shell.run(&both).unwrap().code, Some(2));
}
