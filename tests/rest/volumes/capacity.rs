//! The room for volumes: quotas, disks of nodes, and nodes that keep none.

use super::{ANN, create, delete, ready, running_with};
use crate::{Expected, edit, has, start_on, start_with, until_used, uuid, wait_until};
use serde_json::json;
use wharf_tests::simulated_node;

#[test]
fn quotas_limit_volumes() {
    let quota = "[quota]\nn_volumes = 2\nvolume_gib = 10\n";
    let (server, api) = start_on(quota, &simulated_node("one", ""));
    let limits = api.get("/api/quota/").is(200);
    assert_eq!(limits["n_volumes"], json!({ "used": 0, "limit": 2 }));
    create(&api, "first", 6).is(201);
    let short = create(&api, "second", 5).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["volume_gib"]));
    assert_eq!(short["nearest_available"], json!({ "volume_gib": 4 }));
    has(&short["message"], "quota");
    create(&api, "second", 4).is(201);
    let short = create(&api, "third", 1).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["n_volumes", "volume_gib"]));
    server
        .cli(&[
            "user",
            "limit",
            ANN,
            "--volumes",
            "unlimited",
            "--volume-gib",
            "11",
        ])
        .unwrap();
    create(&api, "third", 1).is(201);
    delete(&api, "first").is(204);
    until_used(&api, "volume_gib", 5);
    create(&api, "fourth", 6).is(201);
}

#[test]
fn a_volume_claims_the_disk_of_its_node() {
    let (server, api) = start_with("");
    let short = create(&api, "huge", 501).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["size_gib"]));
    assert_eq!(short["requested"], json!({ "size_gib": 501 }));
    assert_eq!(short["nearest_available"], json!({ "size_gib": 500 }));
    ready(&api, "large", 495);
    // The disk of an instance is no part of its volumes.
    let refused = api.create(&wharf_tests::small("container")).is(422);
    assert_eq!(refused["detail"]["bottleneck"], json!(["disk_size_gib"]));
    has(server.cli(&["node", "list"]).unwrap(), "495/500");
    delete(&api, "large").is(204);
    wait_until("the disk is free", || {
        let created = api.create(&wharf_tests::small("container"))?;
        Ok((created.status == 201).then_some(()))
    });
}

#[test]
fn nodes_without_volumes_take_none() {
    let none = simulated_node("one", "volumes = false");
    let (server, api) = start_on("", &none);
    wait_until("the node is known to keep none", || {
        let created = create(&api, "data", 1);
        Ok((created.status == 400).then_some(created.body))
    });
    server.finish().unwrap();
    let some = [none, simulated_node("two", "")].concat();
    let (server, api) = start_on("", &some);
    crate::until_says(&server, &["node", "list"], "reachable");
    for n in 0..4 {
        let name = format!("data-{n}");
        create(&api, &name, 1).is(201);
        running_with(&api, &name, false);
    }
}

#[test]
fn a_configuration_without_the_node_of_a_volume_is_refused() {
    let nodes = [simulated_node("one", ""), simulated_node("two", "")].concat();
    let (mut server, api) = start_on("", &nodes);
    ready(&api, "first", 1);
    ready(&api, "second", 1);
    server.terminate().unwrap();
    let (two, three) = ("name = \"two\"", "name = \"three\"");
    edit(&server, two, three);
    let refused = server.run().unwrap_err().to_string();
    has(&refused, "(second) on node two");
    edit(&server, three, two);
    server.run().unwrap();
}

#[test]
fn a_drained_node_keeps_volumes_and_their_instances() {
    let (server, api) = start_with("");
    ready(&api, "data", 1);
    let running = running_with(&api, "data", false);
    let drained = server.cli(&["node", "drain", "one"]).unwrap();
    has(
        &drained,
        "its volumes or snapshots are on this node for good",
    );
    has(
        &drained,
        "\nvolumes and snapshots left: 1; their data stays on this node\n",
    );
    let drained = server.cli(&["node", "drain", "one", "-o", "json"]).unwrap();
    let drained: serde_json::Value = serde_json::from_str(&drained).unwrap();
    assert_eq!(drained["volumes_and_snapshots"], 1);
    let nodes = server.cli(&["node", "list", "-o", "json"]).unwrap();
    let nodes: serde_json::Value = serde_json::from_str(&nodes).unwrap();
    assert_eq!(nodes[0]["volumes_and_snapshots"], 1);
    assert_eq!(drained["instances"][0]["name"], running["name"]);
    create(&api, "more", 1).is(400);
    api.act(uuid(&running), "stop").is(200);
    has(
        server.cli(&["node", "drain", "one"]).unwrap(),
        "its volumes or snapshots are on this node for good",
    );
    server.cli(&["node", "resume", "one"]).unwrap();
    api.act(uuid(&running), "restart").is(200);
}
