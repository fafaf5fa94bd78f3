//! The rights of instances to volumes: one writes, or any number read.

use super::{
    create, delete, delete_at_last, id, one, ready, rename, running_with, until_state, with_volumes,
};
use crate::outage::Node;
use crate::{Expected, has, made, start, start_on, start_with, uuid};
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
fn a_list_shows_the_volumes_of_now_and_they_outlive_their_instance() {
    let (_server, api) = start();
    let (data, cache) = (ready(&api, "data", 3), ready(&api, "cache", 1));
    let volumes = json!([
        mount(id(&data), "/data", false),
        mount("cache", "/opt/cache", true)
    ]);
    let running = made(&api, &with_volumes(volumes));
    for (n, volume) in [&data, &cache].into_iter().enumerate() {
        assert_eq!(running["volumes"][n]["volume"], volume["id"]);
    }
    assert_eq!(api.list().unwrap()[0]["volumes"], running["volumes"]);
    // The list of instances is rendered once for each version of it.
    rename(&api, "data", &json!({ "name": "results" })).is(200);
    assert_eq!(api.list().unwrap()[0]["volumes"][0]["name"], "results");
    let path = format!("/api/instance/{}/", uuid(&running));
    let resized = api.send("PATCH", &path, &json!({ "n_vcpus": 2 })).is(200);
    assert_eq!(resized["volumes"][0]["path"], "/data");
    api.delete(uuid(&running)).is(204);
    delete_at_last(&api, "results");
    assert_eq!(one(&api, "cache").is(200)["attached_to"], json!([]));
    assert_eq!(until_state(&api, "cache", "ready")["id"], cache["id"]);
}

#[test]
fn a_stopped_writer_keeps_its_right_and_who_has_a_volume_is_named() {
    let (_server, api) = start();
    ready(&api, "data", 1);
    ready(&api, "more", 1);
    let writer = running_with(&api, "data", false);
    api.act(uuid(&writer), "stop").is(200);
    let why = refused(&api, json!([mount("data", "/x", true)]));
    has(&why, writer["name"].as_str().unwrap());
    has(&why, "writes data");
    running_with(&api, "more", true);
    let why = refused(&api, json!([mount("more", "/x", false)]));
    has(&why, "reads more");
}

#[test]
fn of_two_writers_at_once_one_is_refused() {
    let (_server, api) = start();
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
    has(&refused["detail"], "being deleted");
    has(
        self::refused(api, json!([mount("data", "/x", true)])),
        "writes data",
    );
    node.off("unreachable");
    delete_at_last(api, "data");
    node.api = crate::kill(&mut node.server, &node.api);
}

#[test]
fn wrong_volumes_are_refused_with_the_reason() {
    let (_server, api) = start();
    ready(&api, "data", 1);
    ready(&api, "more", 1);
    let at = |volume: &str, path: &str| mount(volume, path, false);
    for (volumes, part) in [
        (json!([at("none", "/data")]), "no volume"),
        (json!([at("data", "/etc/x")]), "directory of the system"),
        (json!([at("data", "/home/user")]), "home"),
        (json!([at("data", "/a"), at("data", "/b")]), "twice"),
        (
            json!([at("data", "/a"), at("more", "/a/b")]),
            "within each other",
        ),
        (json!([at("data", "relative")]), "absolute"),
    ] {
        has(refused(&api, volumes), part);
    }
    let mut vm = small("vm");
    vm["volumes"] = json!([at("data", "/data")]);
    let of_vm = api.create(&vm).is(400);
    has(&of_vm["volumes"][0], "containers");
    let estimate = with_volumes(json!([at("none", "/data")]));
    api.send("POST", "/api/estimate/", &estimate).is(400);
    assert_eq!(one(&api, "data").is(200)["attached_to"], json!([]));
}

#[test]
fn an_instance_waits_for_its_volume() {
    let (_server, api) = start_with("volume_ms = 700");
    create(&api, "data", 1).is(201);
    running_with(&api, "data", false);
    assert_eq!(one(&api, "data").is(200)["state"], "ready");
}

#[test]
fn volumes_bring_their_instances_to_their_node() {
    let nodes = [simulated_node("one", ""), simulated_node("two", "")].concat();
    let (_server, api) = start_on("", &nodes);
    // The second volume goes to the node with more room.
    ready(&api, "first", 100);
    ready(&api, "second", 100);
    let mount_at = |name: &str| json!([mount(name, "/data", true)]);
    for _ in 0..3 {
        made(&api, &with_volumes(mount_at("first")));
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
    has(&short["message"], "the volume first");
    let estimate = api.send("POST", "/api/estimate/", &large).is(200);
    assert_eq!(estimate["shortage"]["bottleneck"], short["bottleneck"]);
    large.as_object_mut().unwrap().remove("volumes");
    api.create(&large).is(201);
}
