//! The rights of instances to volumes: one writes, or any number read.

use super::{
    create, delete, delete_at_last, events, id, one, ready, rename, running_with, until_state,
    with_volumes,
};
use crate::outage::Node;
use crate::{Expected, has, start, start_on, start_with, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Api, simulated_node, small};

fn mount(volume: &str, path: &str, read_only: bool) -> Value {
    json!({ "volume": volume, "path": path, "read_only": read_only })
}

fn refused(api: &Api, volumes: Value) -> String {
    let refused = api.create(&with_volumes(volumes)).is(400);
    refused["volumes"][0].as_str().unwrap().to_owned()
}

#[test]
fn an_instance_has_its_volumes_and_they_stay_when_it_goes() {
    let (server, api) = start();
    let (data, cache) = (ready(&api, "data", 3), ready(&api, "cache", 1));
    let volumes = json!([
        { "volume": id(&data), "path": "/data" },
        { "volume": "cache", "path": "/opt/cache", "read_only": true },
    ]);
    let created = api.create(&with_volumes(volumes)).is(201);
    let shown = json!([
        { "volume": data["id"], "name": "data", "path": "/data", "read_only": false },
        { "volume": cache["id"], "name": "cache", "path": "/opt/cache", "read_only": true },
    ]);
    assert_eq!(created["volumes"], shown);
    let running = api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(running["volumes"], shown);
    assert_eq!(api.list().unwrap()[0]["volumes"], shown);
    let attached = json!([{
        "instance": running["uuid"], "name": running["name"], "owner_email": super::ANN,
        "path": "/data", "read_only": false,
    }]);
    assert_eq!(one(&api, "data").is(200)["attached_to"], attached);
    let kinds = events(&api, id(&data));
    assert_eq!(kinds, ["volume-created", "volume-ready", "volume-attached"]);
    // The list of instances is rendered once for each version of it.
    rename(&api, "data", &json!({ "name": "results" })).is(200);
    assert_eq!(api.list().unwrap()[0]["volumes"][0]["name"], "results");

    let name = running["name"].as_str().unwrap();
    has(
        delete(&api, "results").is(400)["detail"].as_str().unwrap(),
        name,
    );
    api.act(uuid(&running), "stop").is(200);
    has(
        delete(&api, "results").is(400)["detail"].as_str().unwrap(),
        name,
    );
    api.act(uuid(&running), "restart").is(200);
    let larger = json!({ "n_vcpus": 2, "name": "other-name" });
    let path = format!("/api/instance/{}/", uuid(&running));
    let resized = api.send("PATCH", &path, &larger).is(200);
    assert_eq!(resized["volumes"][0]["path"], "/data");
    api.delete("other-name").is(204);
    delete_at_last(&api, "results");
    assert_eq!(one(&api, "cache").is(200)["attached_to"], json!([]));
    assert_eq!(until_state(&api, "cache", "ready")["id"], cache["id"]);
    server.finish().unwrap();
}

#[test]
fn a_volume_has_one_writer_or_only_readers() {
    let (server, api) = start();
    ready(&api, "data", 1);
    let writer = running_with(&api, "data", false);
    for read_only in [false, true] {
        let why = refused(&api, json!([mount("data", "/x", read_only)]));
        has(&why, writer["name"].as_str().unwrap());
        has(&why, "writes data");
    }
    // A stopped instance keeps its right.
    api.act(uuid(&writer), "stop").is(200);
    refused(&api, json!([mount("data", "/x", true)]));
    api.delete(uuid(&writer)).is(204);
    wait_until("the right is free", || {
        let body = with_volumes(json!([mount("data", "/x", true)]));
        Ok((api.create(&body)?.status == 201).then_some(()))
    });
    running_with(&api, "data", true);
    has(
        refused(&api, json!([mount("data", "/x", false)])),
        "reads data",
    );
    assert_eq!(
        one(&api, "data").is(200)["attached_to"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    server.finish().unwrap();
}

#[test]
fn of_two_writers_at_once_one_is_refused() {
    let (server, api) = start();
    for round in 0..5 {
        let name = format!("data-{round}");
        ready(&api, &name, 1);
        let body = with_volumes(json!([mount(&name, "/data", false)]));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let send = || api.create(&body).unwrap().status;
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(send)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
        assert!(statuses.contains(&400), "{statuses:?}");
    }
    server.finish().unwrap();
}

#[test]
fn a_volume_is_not_deleted_below_an_instance_that_is_being_deleted() {
    let mut node = Node::start_with("[limits]\nobserve_every_ms = 100\n");
    let api = &node.api;
    ready(api, "data", 1);
    let instance = running_with(api, "data", false);
    node.on("unreachable");
    node.listed("out of reach");
    api.delete(uuid(&instance)).is(204);
    let refused = delete(api, "data").is(400);
    has(refused["detail"].as_str().unwrap(), "being deleted");
    has(
        self::refused(api, json!([mount("data", "/x", true)])),
        "writes data",
    );
    node.off("unreachable");
    delete_at_last(api, "data");
    node.api = crate::kill(&mut node.server, &node.api);
    node.server.finish().unwrap();
}

#[test]
fn wrong_volumes_are_refused() {
    let (server, api) = start();
    ready(&api, "data", 1);
    ready(&api, "more", 1);
    for (volumes, part) in [
        (json!([mount("none", "/data", false)]), "no volume"),
        (
            json!([mount("data", "/etc/x", false)]),
            "directory of the system",
        ),
        (json!([mount("data", "/home/user", false)]), "home"),
        (json!([mount("data", "/home/user/.ssh", true)]), "/home"),
        (json!([mount("data", "/home/user/data", false)]), "/home"),
        (
            json!([mount("data", "/a", false), mount("data", "/b", false)]),
            "twice",
        ),
        (
            json!([mount("data", "/a", false), mount("more", "/a/b", false)]),
            "within each other",
        ),
        (json!([mount("data", "relative", false)]), "absolute"),
        (json!([{ "volume": "data" }]), ""),
        (json!([7]), ""),
        (json!("data"), ""),
    ] {
        has(refused(&api, volumes), part);
    }
    let nine: Vec<_> = (0..9)
        .map(|n| mount("data", &format!("/d{n}"), true))
        .collect();
    refused(&api, json!(nine));
    let mut vm = small("vm");
    vm["volumes"] = json!([mount("data", "/data", false)]);
    has(
        api.create(&vm).is(400)["volumes"][0].as_str().unwrap(),
        "containers",
    );
    let estimate = with_volumes(json!([mount("none", "/data", false)]));
    api.send("POST", "/api/estimate/", &estimate).is(400);
    assert_eq!(one(&api, "data").is(200)["attached_to"], json!([]));
    server.finish().unwrap();
}

#[test]
fn an_instance_waits_for_its_volume() {
    let (server, api) = start_with("volume_ms = 700");
    create(&api, "data", 1).is(201);
    running_with(&api, "data", false);
    assert_eq!(one(&api, "data").is(200)["state"], "ready");
    server.finish().unwrap();
}

#[test]
fn volumes_bring_their_instances_to_their_node() {
    let nodes = [simulated_node("one", ""), simulated_node("two", "")].concat();
    let (server, api) = start_on("", &nodes);
    // The second volume goes to the node with more room.
    ready(&api, "first", 100);
    ready(&api, "second", 100);
    let mount_at = |name: &str| json!([mount(name, "/data", true)]);
    let on_node = |instance: &Value| {
        let bill = server.cli(&["node", "list"]).unwrap();
        (instance["uuid"].clone(), bill)
    };
    for _ in 0..3 {
        let created = api.create(&with_volumes(mount_at("first"))).is(201);
        api.wait_for(uuid(&created), "running").unwrap();
        on_node(&created);
    }
    let both = json!([mount("first", "/a", true), mount("second", "/b", true)]);
    has(refused(&api, both), "two hosts");
    // The node of the first volume has 3 of 16 vCPUs in use.
    let mut large = with_volumes(mount_at("first"));
    large["n_vcpus"] = json!(14);
    let short = api.create(&large).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["n_vcpus", "volumes"]));
    assert_eq!(short["requested"], json!({ "n_vcpus": 14, "volumes": 1 }));
    assert_eq!(
        short["nearest_available"],
        json!({ "n_vcpus": 13, "volumes": 0 })
    );
    has(short["message"].as_str().unwrap(), "the volume first");
    let estimate = api.send("POST", "/api/estimate/", &large).is(200);
    assert_eq!(estimate["shortage"]["bottleneck"], short["bottleneck"]);
    large.as_object_mut().unwrap().remove("volumes");
    api.create(&large).is(201);
    server.finish().unwrap();
}
