//! A node with less capacity than its configuration says: the driver's shortage becomes the 422.

use crate::{Expected, made, start_with, uuid, with};
use serde_json::{Value, json};
use wharf_tests::{Api, Server};

/// Starts a server whose node is configured with 16 vCPUs and 32 GiB, on an engine with a quarter
/// of that.
fn start() -> (Server, Api) {
    start_with("capacity = { n_vcpus = 4, mem_gib = 8, disk_size_gib = 500 }")
}

fn running(api: &Api, n_vcpus: u32) -> Value {
    let body = with("container", json!({ "n_vcpus": n_vcpus }));
    made(api, &body)
}

#[test]
fn a_resize_is_422_with_the_available_sizes() {
    let (server, api) = start();
    running(&api, 1);
    let before = running(&api, 1);
    let asked = json!({ "n_vcpus": 8, "mem_gib": 16, "disk_size_gib": 20, "name": "larger" });
    let refused = api.patch(uuid(&before), &asked).is(422);
    let detail = &refused["detail"];
    assert_eq!(detail["bottleneck"], json!(["n_vcpus", "mem_gib"]));
    assert_eq!(detail["requested"], json!({ "n_vcpus": 8, "mem_gib": 16 }));
    let near = json!({ "n_vcpus": 3, "mem_gib": 7 });
    assert_eq!(detail["nearest_available"], near);
    let after = api.instance(uuid(&before)).is(200);
    assert_eq!(after, before);
    let mut nearest = asked;
    nearest["n_vcpus"] = near["n_vcpus"].clone();
    nearest["mem_gib"] = near["mem_gib"].clone();
    let after = api.patch(uuid(&before), &nearest).is(200);
    assert_eq!(after["n_vcpus"], 3);
    assert_eq!(after["name"], "larger");
    let events = server.cli(&["events", "larger"]).unwrap();
    assert!(events.contains("n_vcpus: the node has 3 of 8"), "{events}");
}

#[test]
fn a_restart_is_422_and_the_instance_stays_stopped_until_it_fits() {
    let (_server, api) = start();
    let first = running(&api, 3);
    api.act(uuid(&first), "stop").is(200);
    let second = running(&api, 3);
    let refused = api.act(uuid(&first), "restart").unwrap();
    let detail = refused.is(422)["detail"].clone();
    assert_eq!(detail["bottleneck"], json!(["n_vcpus"]));
    assert_eq!(detail["requested"], json!({ "n_vcpus": 3 }));
    assert_eq!(detail["nearest_available"], json!({ "n_vcpus": 1 }));
    let stopped = api.instance(uuid(&first)).is(200);
    assert_eq!(stopped["state"], "exited");
    assert_eq!(stopped["n_vcpus"], 3);
    api.patch(uuid(&first), &detail["nearest_available"])
        .is(200);
    api.act(uuid(&first), "restart").is(200);
    api.wait_for(uuid(&first), "running").unwrap();
    api.wait_for(uuid(&second), "running").unwrap();
}
