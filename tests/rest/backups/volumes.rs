//! Backups of volumes, and the volumes made from these.

use super::{Store, finish, forget, nodes_with, path, restore, until_state, verified};
use crate::moves::Cluster;
use crate::{Expected, has, until_true, uuid, wait_until, with};
use serde_json::{Value, json};
use std::fs;
use wharf_testkit::object_store::{BUCKET, Fault};
use wharf_tests::{Answer, Api};

pub(super) const AT_REST: &str = "content = true, volume_content = \"at_rest\"";

pub(super) fn apart(settings: &str) -> (Cluster, Store) {
    let (cluster, store) = (nodes_with(settings), Store::start());
    store.add(&cluster.api);
    (cluster, store)
}

pub(super) fn create(api: &Api, body: &Value) -> Answer {
    api.send("POST", "/api/volume/", body).unwrap()
}

/// Creates a volume, and waits for a state of it.
fn made(api: &Api, body: &Value, state: &str) -> Value {
    let created = create(api, body).is(201);
    let path = format!("/api/volume/{}/", created["id"].as_str().unwrap());
    wait_until(&format!("the volume is {state}"), || {
        let now = api.get(&path).is(200);
        Ok((now["state"] == state).then_some(now))
    })
}

pub(super) fn empty(api: &Api, name: &str) -> Value {
    made(api, &json!({ "name": name, "size_gib": 10 }), "ready")
}

fn send(api: &Api, volume: &str) -> Answer {
    let path = format!("/api/volume/{volume}/backup/");
    api.send("POST", &path, &json!({ "bucket": "offsite" }))
        .unwrap()
}

pub(super) fn done(api: &Api, volume: &str) -> Value {
    until_state(api, &send(api, volume).is(201), "done")
}

pub(super) fn delete(api: &Api, volume: &str) -> Answer {
    let path = format!("/api/volume/{volume}/");
    api.send("DELETE", &path, &Value::Null).unwrap()
}

/// The smallest container that writes a volume.
fn writer(cluster: &Cluster, volume: &str) -> Value {
    let mounts = json!([{ "volume": volume, "path": "/data" }]);
    cluster.running(&with("container", json!({ "volumes": mounts })))
}

/// The numbers of the node that has a volume, and of the other one.
fn places(cluster: &Cluster, volume: &Value) -> (usize, usize) {
    let id = volume["id"].as_str().unwrap();
    let here = usize::from(!cluster.volumes(0).contains_key(id));
    (here, 1 - here)
}

/// Lets a backup of a volume begin, and not end.
fn held(cluster: &Cluster, store: &Store, volume: &str) -> Value {
    store.s3.requests();
    let all = format!("/{BUCKET}/");
    store.s3.misbehave(&all, usize::MAX, Fault::Hang);
    let begun = send(&cluster.api, volume).is(201);
    until_true("the store has a request", || {
        !store.s3.requests().is_empty()
    });
    store.s3.behave();
    begun
}

#[test]
fn a_volume_comes_back_from_its_backup_on_another_host() {
    let (cluster, store) = apart(AT_REST);
    let api = &cluster.api;
    let volume = empty(api, "models");
    let (here, there) = places(&cluster, &volume);
    let instance = writer(&cluster, "models");
    let refused = send(api, "models").is(400).to_string();
    has(
        &refused,
        format!(
            "{} writes volume models",
            instance["name"].as_str().unwrap()
        ),
    );
    api.act(uuid(&instance), "stop").is(200);

    // Nothing writes the volume, and nothing removes it, until the end of the backup.
    let begun = held(&cluster, &store, "models");
    let id = begun["id"].as_str().unwrap();
    has(send(api, "models").is(400), id);
    has(delete(api, "models").is(400), id);
    let refused = api.act(uuid(&instance), "restart").is(400).to_string();
    has(&refused, "backup of volume models is running");
    api.send("DELETE", &path(&begun), &Value::Null).is(204);
    api.act(uuid(&instance), "restart").is(200);
    api.act(uuid(&instance), "stop").is(200);

    let backup = done(api, "models");
    assert_eq!(backup["volume"], volume["id"]);
    assert_eq!(backup["volume_name"], "models");
    assert_eq!(backup["disk_size_gib"], 10);
    for of_instance in ["instance", "instance_name", "flavor", "n_vcpus", "mem_gib"] {
        assert!(backup[of_instance].is_null(), "{of_instance}");
    }
    for query in ["", "?volume=models", "?bucket=offsite"] {
        let listed = api.get(&format!("/api/backup/{query}")).is(200);
        assert_eq!(listed, json!([backup]), "{query}");
    }
    let of_instance = format!("/api/backup/?instance={}", uuid(&instance));
    assert_eq!(api.get(&of_instance).is(200), json!([]));
    assert!(verified(api, &backup)["verified_at"].is_string());
    api.act(uuid(&instance), "restart").is(200);

    let refused = restore(api, &backup, &json!({})).is(400).to_string();
    has(&refused, "create a volume with `backup`");
    let small = json!({ "name": "copy", "size_gib": 9, "backup": backup["id"] });
    let refused = create(api, &small).is(400);
    has(&refused["size_gib"][0], "at least 10");
    let unknown = json!({ "name": "copy", "size_gib": 10, "backup": volume["id"] });
    assert!(create(api, &unknown).is(400)["backup"].is_array());

    cluster.drain(["one", "two"][here]);
    let wanted = json!({ "name": "copy", "size_gib": 12, "backup": backup["id"] });
    let copy = made(api, &wanted, "ready");
    let stored = &cluster.volumes(there)[copy["id"].as_str().unwrap()];
    assert_eq!(stored["content_of"], volume["id"]);
    cluster.delete(&writer(&cluster, "copy"));

    // The backup outlives its volume, and the bucket outlives its list.
    cluster.delete(&instance);
    until_true("the volume can be deleted", || {
        delete(api, "models").status == 204
    });
    forget(api);
    assert_eq!(store.add(api)["n_backups"], 1);
    let of = format!("/api/backup/?volume={}", volume["id"].as_str().unwrap());
    let found = api.get(&of).is(200)[0].clone();
    assert_eq!(found["id"], backup["id"]);
    let wanted = json!({ "name": "models", "size_gib": 10, "backup": found["id"] });
    let again = made(api, &wanted, "ready");
    let stored = &cluster.volumes(there)[again["id"].as_str().unwrap()];
    assert_eq!(stored["content_of"], volume["id"]);

    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let events = events.as_array().unwrap().iter();
    let own = events.filter(|event| event["volume"] == volume["id"]);
    let kinds: Vec<_> = own.map(|event| event["type"].as_str().unwrap()).collect();
    let [created, ended] = ["backup-created", "backup-done"];
    assert_eq!(
        kinds,
        [
            "volume-created",
            "volume-ready",
            "volume-attached",
            created,
            created,
            ended,
            "volume-deleted"
        ]
    );
    finish(cluster);
}

#[test]
fn content_that_is_not_that_of_the_backup_becomes_no_volume() {
    let (cluster, store) = apart(AT_REST);
    let api = &cluster.api;
    empty(api, "models");
    let backup = done(api, "models");
    let file = store
        .s3
        .file(&format!("wharf/{}/content", backup["id"].as_str().unwrap()));
    let whole = fs::read(&file).unwrap();
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let body = |name: &str| json!({ "name": name, "size_gib": 10, "backup": backup["id"] });
    let wrong = made(api, &body("wrong"), "error");
    has(&wrong["reason"], "content of its backup did not come");
    fs::write(&file, whole).unwrap();
    made(api, &body("right"), "ready");
    delete(api, "wrong").is(204);

    // A host without backups of volumes takes none, and gives none.
    let (other, bucket) = apart("content = true");
    empty(&other.api, "models");
    has(
        send(&other.api, "models").is(400),
        "makes no backups of volumes",
    );
    let found = other.api.send("POST", "/api/bucket/", &{
        let mut elsewhere = store.bucket();
        elsewhere["name"] = json!("elsewhere");
        elsewhere
    });
    assert_eq!(found.is(201)["n_backups"], 1);
    has(
        create(&other.api, &body("copy")).is(400),
        "takes this backup",
    );
    other.finish();
    drop(bucket);
    finish(cluster);
}

#[test]
fn the_limits_of_nodes_that_take_a_backup_are_the_reason_of_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    let settings = format!("{AT_REST}, break_limits_while = \"{}\"", broken.display());
    let (mut cluster, _store) = apart(&settings);
    empty(&cluster.api, "models");
    let backup = done(&cluster.api, "models");
    fs::write(&broken, "").unwrap();
    cluster.restart_server();
    wait_until("the limits of both nodes are broken", || {
        let list = cluster.server.cli(&["node", "list"])?;
        Ok((list.matches("limits broken").count() == 2).then_some(()))
    });
    let body = json!({ "name": "copy", "size_gib": 10, "backup": backup["id"] });
    let refused = create(&cluster.api, &body).is(400);
    has(&refused["detail"], "does not hold the sizes of disks");
    fs::remove_file(&broken).unwrap();
    until_true("a node takes the backup", || {
        create(&cluster.api, &body).status == 201
    });
    wait_until("the volume is ready", || {
        let now = cluster.api.get("/api/volume/copy/").is(200);
        Ok((now["state"] == "ready").then_some(()))
    });
    finish(cluster);
}

#[test]
fn a_backup_of_a_volume_goes_on_after_a_kill() {
    let (mut cluster, store) = apart("content = true, volume_content = \"at_any_time\"");
    let volume = empty(&cluster.api, "models");
    let instance = writer(&cluster, "models");
    let begun = held(&cluster, &store, "models");
    cluster.restart_server();
    until_state(&cluster.api, &begun, "done");
    let body = json!({ "name": "copy", "size_gib": 10, "backup": begun["id"] });
    store.s3.requests();
    store
        .s3
        .misbehave(&format!("/{BUCKET}/"), usize::MAX, Fault::Hang);
    let created = create(&cluster.api, &body).is(201);
    until_true("the store has a request", || {
        !store.s3.requests().is_empty()
    });
    store.s3.behave();
    cluster.restart_server();
    let path = format!("/api/volume/{}/", created["id"].as_str().unwrap());
    wait_until("the volume is ready", || {
        let now = cluster.api.get(&path).is(200);
        Ok((now["state"] == "ready").then_some(()))
    });
    let (place, _) = places(&cluster, &created);
    let stored = &cluster.volumes(place)[created["id"].as_str().unwrap()];
    assert_eq!(stored["content_of"], volume["id"]);
    cluster.delete(&instance);
    finish(cluster);
}
