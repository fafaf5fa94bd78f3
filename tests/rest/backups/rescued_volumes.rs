//! Volumes that were lost with their node, and come back with their instances.

use super::rescue::{events, lose, path_of, recreate};
use super::volumes::{AT_REST, apart, delete, done, empty};
use super::{Store, finish};
use crate::moves::Cluster;
use crate::{Expected, has, until_true, uuid, with};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use wharf_testkit::object_store::{BUCKET, Fault};
use wharf_tests::{Shell, interval};

/// More than the deadline of an instance on these nodes, in seconds.
const LATE: Duration = Duration::from_secs(6);

/// A container with volumes that it writes.
fn container(cluster: &Cluster, name: &str, mounts: &Value) -> Value {
    cluster.running(&with(
        "container",
        json!({ "name": name, "volumes": mounts }),
    ))
}

fn volume(cluster: &Cluster, named: &str) -> Value {
    cluster.api.get(&format!("/api/volume/{named}/")).is(200)
}

fn backup_of(cluster: &Cluster, instance: &Value) -> Value {
    let path = format!("/api/instance/{}/backup/", uuid(instance));
    let body = json!({ "bucket": "offsite" });
    let begun = cluster.api.send("POST", &path, &body).is(201);
    super::until_state(&cluster.api, &begun, "done")
}

fn content_of(cluster: &Cluster, node: usize, volume: &Value) -> Value {
    cluster.volumes(node)[volume["id"].as_str().unwrap()]["content_of"].clone()
}

#[test]
fn the_volumes_of_a_lost_instance_come_back_with_it() {
    let (cluster, store) = apart(AT_REST);
    let api = &cluster.api;
    cluster.drain("two");
    let [data, notes, _] = ["data", "notes", "scratch"].map(|name| empty(api, name));
    let kept = [&data, &notes].map(|volume| done(api, volume["id"].as_str().unwrap()));
    let mounts = json!([
        { "volume": "data", "path": "/data" },
        { "volume": "notes", "path": "/notes", "read_only": true },
        { "volume": "scratch", "path": "/scratch" },
    ]);
    let box_ = container(&cluster, "box", &mounts);
    let only = json!([{ "volume": "notes", "path": "/papers", "read_only": true }]);
    let reader = container(&cluster, "reader", &only);
    for instance in [&box_, &reader] {
        backup_of(&cluster, instance);
    }
    lose(&cluster);
    let rate = |of: &Value| {
        let usage = api.get("/api/usage/").is(200);
        let mut volumes = usage["volumes"].as_array().unwrap().iter();
        let found = volumes.find(|one| one["id"] == of["id"]).unwrap();
        found["hourly_usd"].as_f64().unwrap()
    };
    assert_eq!(rate(&data), 0.0);

    let found = api.get(&path_of(&box_)).is(200);
    let back = found["volumes"].as_array().unwrap();
    for (returning, of) in [(&data, &kept[0]), (&notes, &kept[1])] {
        let one = back.iter().find(|one| one["volume"] == returning["id"]);
        let one = one.unwrap();
        assert_eq!(one["backup"]["id"], of["id"]);
        assert!(one["missing_s"].is_u64());
        assert_eq!(one["read_only"], returning["name"] == "notes");
    }
    assert_eq!(found["volumes_lost"], json!(["scratch"]));

    // The content of a volume takes longer than an instance may take to start.
    let all = format!("/{BUCKET}/");
    let busy = Fault::Answer(503, "SlowDown");
    store.s3.misbehave(&all, usize::MAX, busy);
    let said = cluster.server.cli(&["node", "restore", "one"]).unwrap();
    has(&said, "2 are made again, 0 stay lost");
    has(&said, "without its volumes: scratch");
    interval(LATE);
    for instance in [&box_, &reader] {
        assert_eq!(cluster.now(instance)["state"], "provisioning");
    }
    for name in ["data", "notes"] {
        assert_eq!(volume(&cluster, name)["state"], "creating");
    }
    store.s3.behave();
    let now = api.wait_for("box", "running").unwrap();
    api.wait_for("reader", "running").unwrap();
    let paths: Vec<_> = now["volumes"].as_array().unwrap().iter().collect();
    assert_eq!(paths.len(), 2, "{now}");
    assert_eq!(now["volumes"][0]["path"], "/data");
    for returned in [&data, &notes] {
        let name = returned["name"].as_str().unwrap();
        let again = volume(&cluster, name);
        assert_eq!(again["id"], returned["id"]);
        assert_eq!(again["state"], "ready");
        assert!(rate(returned) > 0.0);
        assert_eq!(content_of(&cluster, 1, returned), returned["id"]);
    }
    assert_eq!(volume(&cluster, "scratch")["state"], "error");
    let told = api.get("/api/event/?after=0&limit=1000").is(200);
    let told = told.as_array().unwrap().iter();
    let again: Vec<_> = told
        .filter(|event| event["type"] == "volume-recreated")
        .map(|event| (&event["volume"], event["message"].as_str().unwrap()))
        .collect();
    assert_eq!(again.len(), 2, "{again:?}");
    has(again[0].1, kept[0]["created_at"].as_str().unwrap());

    // The machine comes back with its disks, which nobody wants.
    cluster.away(0, false);
    until_true("the lost volumes are removed", || {
        cluster.volumes(0).is_empty()
    });
    for returned in [&data, &notes] {
        assert_eq!(content_of(&cluster, 1, returned), returned["id"]);
    }
    for instance in [&box_, &reader] {
        cluster.delete(instance);
    }
    delete(api, "scratch").is(204);
    finish(cluster);
}

/// An instance with a volume on the node `one`, both with backups, after the loss of the node.
fn lost(cluster: &Cluster) -> (Value, Value) {
    cluster.drain("two");
    empty(&cluster.api, "data");
    let kept = done(&cluster.api, "data");
    let mounts = json!([{ "volume": "data", "path": "/data" }]);
    let instance = container(cluster, "box", &mounts);
    backup_of(cluster, &instance);
    lose(cluster);
    (instance, kept)
}

fn damage(store: &Store, backup: &Value) -> impl FnOnce() + use<> {
    let id = backup["id"].as_str().unwrap();
    let file = store.s3.file(&format!("wharf/{id}/content"));
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(&file, altered).unwrap();
    move || fs::write(&file, whole).unwrap()
}

#[test]
fn an_instance_whose_volume_does_not_come_back_is_lost_as_before() {
    let (cluster, store) = apart(AT_REST);
    let (instance, kept) = lost(&cluster);
    let api = &cluster.api;
    let mend = damage(&store, &kept);
    let newest = json!({ "backup": "newest" });
    recreate(api, &instance, &newest).is(200);
    until_true("the content of the volume is refused", || {
        events(api, &instance, "failed").len() == 1
    });
    assert_eq!(cluster.now(&instance)["state"], "error");
    assert_eq!(volume(&cluster, "data")["attached_to"], json!([]));
    mend();

    // Its volume can still come back, also after an attempt without it that failed.
    let own = api.get(&path_of(&instance)).is(200)["backup"].clone();
    let mend = damage(&store, &own);
    let without = json!({ "backup": "newest", "volumes": false });
    recreate(api, &instance, &without).is(200);
    until_true("the content of the instance is refused", || {
        events(api, &instance, "failed").len() == 2
    });
    mend();
    recreate(api, &instance, &newest).is(200);
    let now = api.wait_for("box", "running").unwrap();
    assert_eq!(now["volumes"][0]["name"], "data");
    let data = volume(&cluster, "data");
    assert_eq!(data["state"], "ready");
    assert_eq!(content_of(&cluster, 1, &data), data["id"]);
    cluster.delete(&instance);
    cluster.away(0, false);
    finish(cluster);
}

#[test]
fn a_lost_instance_comes_back_without_its_volumes_if_they_are_in_the_way() {
    let (cluster, _store) = apart(AT_REST);
    let (instance, _) = lost(&cluster);
    let (api, server) = (&cluster.api, &cluster.server);
    let limit = |n: &str| {
        let args = ["user", "limit", "ann@example.com", "--volumes", n];
        server.cli(&args).unwrap();
    };
    limit("0");
    let newest = json!({ "backup": "newest" });
    let refused = recreate(api, &instance, &newest).is(422).to_string();
    has(&refused, "n_volumes");
    limit("1");
    let wrong = json!({ "backup": "newest", "volumes": "no" });
    let refused = recreate(api, &instance, &wrong).is(400);
    has(&refused["volumes"][0], "true or false");
    let shell = Shell::signed_in(server, "ann@example.com").unwrap();
    let path = path_of(&instance);
    let again = ["recreate", "box", "--backup", "newest", "--without-volumes"];
    shell.json(&again, "POST", &path, 200).unwrap();
    let now = api.wait_for("box", "running").unwrap();
    assert_eq!(now["volumes"], json!([]));
    assert_eq!(volume(&cluster, "data")["state"], "error");
    cluster.delete(&instance);
    cluster.away(0, false);
    finish(cluster);
}
