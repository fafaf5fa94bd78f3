//! Volumes of instances that exist.

use super::{create, delete, delete_at_last, events, id, one, ready, running_with, with_volumes};
use crate::{Expected, has, running, start, start_on, start_with, uuid};

use serde_json::{Value, json};
use wharf_tests::{Answer, Api, simulated_node};

/// The setting of an engine that attaches volumes to existing instances.
const LATE: &str = "late_attach = true";

fn attach(api: &Api, instance: &Value, volume: &str, path: &str, read_only: bool) -> Answer {
    let body = json!({ "volume": volume, "path": path, "read_only": read_only });
    let action = format!("/api/instance/{}/attach-volume/", uuid(instance));
    api.send("POST", &action, &body).unwrap()
}

fn detach(api: &Api, instance: &Value, volume: &str) -> Answer {
    let action = format!("/api/instance/{}/detach-volume/", uuid(instance));
    api.send("POST", &action, &json!({ "volume": volume }))
        .unwrap()
}

#[test]
fn a_volume_is_attached_and_detached_live() {
    let (server, api) = start_with(LATE);
    let data = ready(&api, "data", 1);
    let instance = running(&api);
    assert_eq!(instance["volumes"], json!([]));
    let attached = attach(&api, &instance, "data", "/data", false).is(200);
    assert_eq!(attached["uuid"], instance["uuid"]);
    assert_eq!(attached["volumes"][0]["volume"], data["id"]);
    assert_eq!(attached["message"], "Volume data is attached at /data.");
    // A retry is safe; another path is not.
    attach(&api, &instance, id(&data), "/data", false).is(200);
    let refused = attach(&api, &instance, "data", "/other", false).is(400);
    has(refused["volume"][0].as_str().unwrap(), "/data");
    attach(&api, &instance, "data", "/data", true).is(400);
    has(
        delete(&api, "data").is(400)["detail"].as_str().unwrap(),
        instance["name"].as_str().unwrap(),
    );
    let other = api.create(&with_volumes(json!([{ "volume": "data", "path": "/x" }])));
    other.is(400);

    let detached = detach(&api, &instance, "data").is(200);
    assert_eq!(detached["message"], "Volume data is detached.");
    assert_eq!(detached["volumes"], json!([]));
    detach(&api, &instance, "data").is(200);
    has(
        detach(&api, &instance, "none").is(400)["volume"][0]
            .as_str()
            .unwrap(),
        "no such volume",
    );
    let kinds = events(&api, id(&data));
    let expected =
        ["created", "ready", "attached", "detached"].map(|kind| format!("volume-{kind}"));
    assert_eq!(kinds, expected);
    // The right is free.
    running_with(&api, "data", false);
    server.finish().unwrap();
}

#[test]
fn a_stopped_instance_gets_and_loses_volumes() {
    let (server, api) = start_with(LATE);
    ready(&api, "data", 1);
    let instance = running(&api);
    api.act(uuid(&instance), "stop").is(200);
    attach(&api, &instance, "data", "/data", false).is(200);
    let now = api.instance(uuid(&instance)).is(200);
    assert_eq!(now["state"], "exited");
    assert_eq!(now["volumes"][0]["name"], "data");
    api.act(uuid(&instance), "restart").is(200);
    api.act(uuid(&instance), "stop").is(200);
    detach(&api, &instance, "data").is(200);
    delete(&api, "data").is(204);
    let events = server.cli(&["events", uuid(&instance)]).unwrap();
    assert_eq!(events.matches("compute-released").count(), 2, "{events}");
    server.finish().unwrap();
}

#[test]
fn engines_without_late_attachment_say_so() {
    let (server, api) = start();
    ready(&api, "data", 1);
    let instance = running(&api);
    let refused = attach(&api, &instance, "data", "/data", false).is(400);
    has(refused["detail"].as_str().unwrap(), "at creation only");
    let with = running_with(&api, "data", false);
    let refused = detach(&api, &with, "data").is(400);
    has(refused["detail"].as_str().unwrap(), "at creation only");
    assert_eq!(
        api.instance(uuid(&with)).is(200)["volumes"][0]["name"],
        "data"
    );
    server.finish().unwrap();
}

#[test]
fn attachments_that_cannot_be_are_refused() {
    let nodes = [simulated_node("one", ""), simulated_node("two", "")].concat();
    let (server, api) = start_on("", &nodes);
    ready(&api, "first", 100);
    ready(&api, "second", 100);
    let instance = running_with(&api, "first", false);
    let refused = attach(&api, &instance, "second", "/second", false).is(400);
    has(refused["volume"][0].as_str().unwrap(), "another host");
    has(
        attach(&api, &instance, "none", "/x", false).is(400)["volume"][0]
            .as_str()
            .unwrap(),
        "no volume",
    );
    let bad = attach(&api, &instance, "second", "/etc/x", false).is(400);
    has(bad["path"][0].as_str().unwrap(), "system");
    let vm = api.create(&wharf_tests::small("vm")).is(201);
    api.wait_for(uuid(&vm), "running").unwrap();
    has(
        attach(&api, &vm, "first", "/x", true).is(400)["detail"]
            .as_str()
            .unwrap(),
        "VM",
    );
    let bob = server.user("bob@example.com").unwrap();
    attach(&bob, &instance, "first", "/x", true).is(404);
    detach(&bob, &instance, "first").is(404);
    server.finish().unwrap();
}

#[test]
fn the_engine_may_refuse_a_change_of_volumes() {
    let faults =
        "late_attach = true, faults = [{ call = \"set_volumes\", error = \"error\", nth = 1 }]";
    let (server, api) = start_with(faults);
    ready(&api, "data", 1);
    let instance = running(&api);
    let refused = attach(&api, &instance, "data", "/data", false).is(400);
    has(refused["detail"].as_str().unwrap(), "could not attach");
    assert_eq!(one(&api, "data").is(200)["attached_to"], json!([]));
    attach(&api, &instance, "data", "/data", false).is(200);
    create(&api, "more", 1).is(201);
    api.delete(uuid(&instance)).is(204);
    delete_at_last(&api, "data");
    server.finish().unwrap();
}
