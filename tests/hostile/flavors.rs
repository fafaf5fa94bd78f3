//! Hostile flavor providers: only requests for their flavors fail.

use crate::fixtures::Plugins;
use crate::{logged, server, uuid};
use serde_json::json;
use wharf_tests::{Ports, Server, simulated_node, small, until};

#[test]
fn an_impossible_blueprint_fails_its_own_request_only() {
    let plugins = Plugins::flavors();
    let (server, api) = server(&plugins, &[]);
    let body = |flavor: &str| {
        let mut body = small("container");
        body["flavor"] = flavor.into();
        body
    };
    for (flavor, says) in [
        ("loops", "more than 300 ms of CPU time"),
        ("traps", "on purpose"),
        ("eats", "more than 32 MiB of memory"),
        ("dots", "/etc/../../root/x"),
        ("relative", "root/x"),
        ("secret", "which was not given"),
        ("many-files", "flavor provider"),
        ("large-file", "files of"),
        ("image", "image"),
        ("variable", "environment variable"),
        ("health", "health check"),
    ] {
        let answer = api.create(&body(flavor)).unwrap();
        assert_eq!(answer.status, 500, "{flavor}: {answer:?}");
        let text = answer.body.to_string();
        assert!(
            !text.contains(says) && !text.contains("fault"),
            "{flavor}: {text}"
        );
        assert!(
            logged(&server, &["flavor provider", says]),
            "{flavor}: {}",
            server.log()
        );
        let well = api.small_container().unwrap();
        api.wait_for(uuid(&well), "running").unwrap();
        api.delete(uuid(&well)).unwrap().expect(204).unwrap();
    }
    let harmless = api.create(&body("harmless")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&harmless), "running").unwrap();
    assert_eq!(api.list().unwrap().len(), 1);
    server.finish().unwrap();
}

#[test]
fn no_file_of_a_flavor_goes_into_a_volume() {
    let plugins = Plugins::flavors();
    let node = simulated_node("one", "late_attach = true");
    let ports = Ports::take().settings();
    let settings = format!(
        "plugins_dir = \"{}\"\n{ports}{node}",
        plugins.path().display()
    );
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let volume = json!({ "name": "data", "size_gib": 1 });
    api.send("POST", "/api/volume/", &volume)
        .unwrap()
        .expect(201)
        .unwrap();
    until("the volume is ready", || {
        let volume = api.get("/api/volume/data/")?.expect(200)?;
        Ok((volume["state"] == "ready").then_some(()))
    })
    .unwrap();
    let mut body = small("container");
    body["flavor"] = "own-file".into();
    body["volumes"] = json!([{ "volume": "data", "path": "/srv/own" }]);
    let refused = api.create(&body).unwrap().expect(400).unwrap();
    let why = refused["volumes"][0].as_str().unwrap();
    assert!(why.contains("the file /srv/own/x"), "{why}");
    body["volumes"] = json!([]);
    let created = api.create(&body).unwrap().expect(201).unwrap();
    let running = api.wait_for(uuid(&created), "running").unwrap();
    let attach = |path: &str| {
        let mount = json!({ "volume": "data", "path": path });
        let at = format!("/api/instance/{}/attach-volume/", uuid(&running));
        api.send("POST", &at, &mount).unwrap()
    };
    let refused = attach("/srv").expect(400).unwrap();
    let why = refused["path"][0].as_str().unwrap();
    assert!(why.contains("the file /srv/own/x"), "{why}");
    attach("/srv/other").expect(200).unwrap();
    server.finish().unwrap();
}
