//! Volumes through kills, faults of engines, outages and the loss of a node.

use super::{
    create, delete, delete_at_last, events, id, no_failure, one, ready, running_with, until_state,
};
use crate::fsck::{bytes, edit, row_of};
use crate::moves::Cluster;
use crate::outage::Node;
use crate::{
    Expected, has, kill, running, start_lasting, start_on, until_logged, until_says, until_true,
    until_used, used, uuid,
};
use serde_json::{Value, json};
use wharf_tests::simulated_node;

#[test]
fn volumes_are_made_and_removed_after_kills() {
    let (mut server, mut api) = start_lasting("volume_ms = 150, latency_ms = 20");
    for pause in [0, 60] {
        let name = format!("data-{pause}");
        create(&api, &name, 2).is(201);
        wharf_tests::interval(std::time::Duration::from_millis(pause));
        api = kill(&mut server, &api);
        until_state(&api, &name, "ready");
        let instance = running_with(&api, &name, false);
        api.delete(uuid(&instance)).is(204);
        api = kill(&mut server, &api);
        delete_at_last(&api, &name);
        wharf_tests::interval(std::time::Duration::from_millis(pause));
        api = kill(&mut server, &api);
        one(&api, &name).is(404);
        until_used(&api, "volume_gib", 0);
    }
    no_failure(&server);
}

#[test]
fn a_volume_that_cannot_be_made_is_in_error_and_free() {
    let settings = "faults = [{ call = \"make\", error = \"error\" }]";
    let node = wharf_tests::simulated_node("one", settings);
    let (_server, api) = crate::start_on("provisioning_deadline_s = 1\n", &node);
    let created = create(&api, "data", 1).is(201);
    let mount = json!([{ "volume": "data", "path": "/data" }]);
    let waiting = api.create(&super::with_volumes(mount)).is(201);
    let failed = until_state(&api, "data", "error");
    has(&failed["reason"], "could not make");
    api.wait_for(uuid(&waiting), "error").unwrap();
    let kinds = events(&api, id(&created));
    assert!(kinds.contains(&"volume-failed".to_owned()), "{kinds:?}");
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 0.0);
    assert_eq!(usage["volumes"][0]["state"], "error");
    let mount = json!([{ "volume": "data", "path": "/data" }]);
    let refused = api.create(&super::with_volumes(mount)).is(400);
    has(&refused["volumes"][0], "data");
    api.delete(uuid(&waiting)).is(204);
    delete_at_last(&api, "data");
}

#[test]
fn volumes_that_are_absent_from_an_accepted_engine_are_in_error() {
    let node = Node::start_with("[limits]\nobserve_every_ms = 100\n");
    let volume = ready(&node.api, "data", 1);
    node.on("other-store");
    node.listed("outage: ");
    node.server.cli(&["node", "accept", "one"]).unwrap();
    let failed = until_state(&node.api, "data", "error");
    has(&failed["reason"], "no more");
    let kinds = events(&node.api, id(&volume));
    assert_eq!(kinds.last().unwrap(), "volume-failed");
    // The own store returns, and the operator accepts it.
    node.off("other-store");
    node.listed("outage: ");
    node.server.cli(&["node", "accept", "one"]).unwrap();
    until_state(&node.api, "data", "ready");
    let kinds = events(&node.api, id(&volume));
    assert_eq!(kinds.last().unwrap(), "volume-ready");
    delete(&node.api, "data").is(204);
}

#[test]
fn volumes_are_lost_with_their_node() {
    let cluster = Cluster::start(&[("one", ""), ("two", "")]);
    let (server, api) = (&cluster.server, &cluster.api);
    server.cli(&["node", "drain", "two"]).unwrap();
    let volume = ready(api, "data", 7);
    let instance = running_with(api, "data", false);
    server.cli(&["node", "resume", "two"]).unwrap();
    cluster.away(0, true);
    until_says(server, &["node", "list"], "out of reach");
    server.cli(&["node", "lost", "one", "--yes"]).unwrap();
    let lost = one(api, "data").is(200);
    assert_eq!(lost["state"], "error");
    has(&lost["reason"], "failed for good");
    assert_eq!(lost["attached_to"], json!([]));
    assert_eq!((used(api, "n_volumes"), used(api, "volume_gib")), (0, 0));
    let row = api.instance(uuid(&instance)).is(200);
    assert_eq!(row["volumes"], json!([]));
    // The instance is created again elsewhere, without the lost volume.
    let again = api.act(uuid(&instance), "recreate").is(200);
    assert_eq!(again["volumes"], json!([]));
    api.wait_for(uuid(&instance), "running").unwrap();
    let usage = api.get("/api/usage/").is(200);
    let of_volume = &usage["volumes"][0];
    assert_eq!(
        (&of_volume["id"], &of_volume["hourly_usd"]),
        (&volume["id"], &json!(0.0))
    );
    delete(api, "data").is(204);
    assert_eq!(api.get("/api/volume/").is(200), Value::Array(Vec::new()));
}

#[test]
fn lost_volumes_are_removed_from_a_machine_that_comes_back() {
    let cluster = Cluster::start(&[("one", ""), ("two", "")]);
    let (server, api) = (&cluster.server, &cluster.api);
    server.cli(&["node", "drain", "two"]).unwrap();
    let (lost, deleted) = (ready(api, "data", 7), ready(api, "gone", 1));
    let instance = running_with(api, "data", false);
    cluster.away(0, true);
    until_says(server, &["node", "list"], "out of reach");
    server.cli(&["node", "lost", "one", "--yes"]).unwrap();
    delete(api, "gone").is(204);
    cluster.away(0, false);
    until_true("the deleted volume is removed", || {
        !cluster.volumes(0).contains_key(id(&deleted))
    });
    until_true("the lost volume is removed", || {
        !cluster.volumes(0).contains_key(id(&lost))
    });
    assert_eq!(one(api, "data").is(200)["state"], "error");
    server.cli(&["node", "resume", "one"]).unwrap();
    let again = ready(api, "other", 3);
    assert!(cluster.volumes(0).keys().eq([id(&again)]));
    delete(api, "data").is(204);
    api.delete(uuid(&instance)).is(204);
    cluster.finish();
}

#[test]
fn a_volume_without_a_row_is_removed() {
    let (mut server, api) = start_lasting("");
    let volume = ready(&api, "data", 1);
    server.terminate().unwrap();
    edit(&server, |rows| {
        let key = [b"v", &bytes(id(&volume))[..], &[0]].concat();
        assert!(rows.remove(&*key).unwrap().is_some());
    });
    let found = server.cli(&["fsck"]).unwrap_err().to_string();
    has(&found, "volumes_on has");
    has(&found, "bills it after its deletion");
    drop(server.cli(&["fsck", "--repair", "--yes"]));
    server.run().unwrap();
    until_logged(&server, "volume without a row, removing it");
    let listed = server.again(&api).get("/api/volume/").is(200);
    assert_eq!(listed, json!([]));
    // `fsck` goes on to miss the row.
    server.kill().unwrap();
}

#[test]
fn fsck_names_mounts_that_contradict_their_volumes() {
    let faults = "faults = [{ call = \"unmake\", error = \"error\" }]";
    let nodes = ["one", "two"].map(|name| simulated_node(name, faults));
    let (mut server, api) = start_on("", &nodes.concat());
    // The second volume goes to the node with more room.
    let (data, far) = (ready(&api, "data", 100), ready(&api, "far", 100));
    let gone = ready(&api, "gone", 1);
    delete(&api, "gone").is(204);
    let (writer, other) = (running_with(&api, "data", false), running(&api));
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    edit(&server, |rows| {
        let key = |instance: &Value, volume: &str| {
            [b"i", &bytes(uuid(instance))[..], &[8], &bytes(volume)[..]].concat()
        };
        let mount = row_of(rows, &key(&writer, id(&data)));
        for (instance, volume) in [
            (&other, id(&data)),
            (&writer, id(&far)),
            (&other, id(&gone)),
            (&other, uuid(&other)),
        ] {
            rows.insert(&*key(instance, volume), &*mount).unwrap();
        }
    });
    let found = server.cli(&["fsck"]).unwrap_err().to_string();
    let (writer, other) = (uuid(&writer), uuid(&other));
    for finding in [
        format!("volume {} has 2 writers and 0 readers", id(&data)),
        format!("{writer}: its volume {} is on another node", id(&far)),
        format!("{other}: its volume {} was deleted", id(&gone)),
        format!("{other}: its volume {other} does not exist"),
    ] {
        has(&found, finding);
    }
}

#[test]
fn a_volume_that_its_engine_has_no_more_is_in_error_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let lost = dir.path().join("lost");
    let settings = format!("lose_volumes_while = \"{}\"", lost.display());
    let node = wharf_tests::simulated_node("one", &settings);
    let (_server, api) = crate::start_on("[limits]\nobserve_every_ms = 100\n", &node);
    let volume = ready(&api, "data", 1);
    let with = running_with(&api, "data", false);
    std::fs::write(&lost, "").unwrap();
    let failed = until_state(&api, "data", "error");
    has(&failed["reason"], "no more");
    assert_eq!(
        api.get("/api/usage/").is(200)["volumes"][0]["hourly_usd"],
        0.0
    );
    // The instance keeps its right, and does not start without its volume.
    api.act(uuid(&with), "stop").is(200);
    let refused = api.act(uuid(&with), "restart").is(400);
    has(&refused["detail"], "Volume data");
    std::fs::remove_file(&lost).unwrap();
    until_state(&api, "data", "ready");
    api.act(uuid(&with), "restart").is(200);
    let kinds = events(&api, id(&volume));
    let failed = kinds.iter().filter(|kind| *kind == "volume-failed");
    assert_eq!(failed.count(), 1, "{kinds:?}");
}

/// A server on an engine whose store can be edited while the server does not run.
struct Editable {
    server: wharf_tests::Server,
    api: wharf_tests::Api,
    dir: tempfile::TempDir,
}

impl Editable {
    fn start(settings: &str) -> Self {
        let (node, dir) = wharf_tests::lasting_node("one", settings).unwrap();
        let (server, api) = crate::start_on("[limits]\nobserve_every_ms = 100\n", &node);
        Self { server, api, dir }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("engine")
    }

    /// Changes the lines of the store. Returns the lines before.
    fn edit(&mut self, change: impl FnOnce(Vec<Value>) -> Vec<Value>) -> String {
        self.server.terminate().unwrap();
        let before = std::fs::read_to_string(self.path()).unwrap();
        let lines = before
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let changed = change(lines.collect());
        let changed: String = changed.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.path(), changed).unwrap();
        self.run();
        before
    }

    fn put(&mut self, content: &str) {
        self.server.terminate().unwrap();
        std::fs::write(self.path(), content).unwrap();
        self.run();
    }

    fn run(&mut self) {
        self.server.run().unwrap();
        self.api = self.server.again(&self.api);
    }

    fn listed(&self, words: &str) {
        until_says(&self.server, &["node", "list"], words);
    }
}

/// Sets the time at which the engine has a volume in full; it has failed if there is none.
fn with_time(mut lines: Vec<Value>, volume: &str, at: &Value) -> Vec<Value> {
    for line in &mut lines {
        if line["id"] == volume && line["volume"].is_object() {
            line["volume"]["Is"]["ready_at"] = at.clone();
        }
    }
    lines
}

#[test]
fn a_volume_that_has_failed_on_its_engine_is_in_error() {
    let mut engine = Editable::start("");
    let volume = ready(&engine.api, "data", 5);
    let content = engine.edit(|lines| with_time(lines, id(&volume), &Value::Null));
    let failed = until_state(&engine.api, "data", "error");
    has(&failed["reason"], "no more");
    let usage = engine.api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 0.0);
    engine.put(&content);
    until_state(&engine.api, "data", "ready");
}

#[test]
fn a_volume_that_its_engine_has_in_part_is_completed() {
    let mut engine = Editable::start("");
    let volume = ready(&engine.api, "data", 5);
    let asked = "request=\"make-volume\"";
    let before = engine.server.log().matches(asked).count();
    // The simulated engine completes no volume before its time.
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let later = json!((now + std::time::Duration::from_secs(1_000_000)).as_millis() as u64);
    let content = engine.edit(|lines| with_time(lines, id(&volume), &later));
    until_state(&engine.api, "data", "error");
    until_true("the engine is asked to complete the volume", || {
        engine.server.written().matches(asked).count() > before
    });
    engine.put(&content);
    until_state(&engine.api, "data", "ready");
}

#[test]
fn a_volume_that_was_never_made_does_not_prove_the_store() {
    // The request for the second volume ends only with the call.
    let faults = "faults = [{ call = \"make\", error = \"late\", after_ms = 60000, nth = 2 }]";
    let mut engine = Editable::start(faults);
    ready(&engine.api, "data", 1);
    engine.listed("reachable");
    let later = create(&engine.api, "later", 1).is(201);
    let content = engine.edit(|lines| {
        // Another store: without a mark, and with the volume whose request went there.
        let made = lines.into_iter().find(|line| line["volume"].is_object());
        made.into_iter()
            .map(|mut line| {
                line["id"] = later["id"].clone();
                line
            })
            .collect()
    });
    engine.listed("outage: ");
    wharf_tests::observed(&engine.api, "one", 5).unwrap();
    engine.listed("outage: ");
    assert_eq!(one(&engine.api, "data").is(200)["state"], "ready");
    engine.put(&content);
    engine.listed("reachable");
}

#[test]
fn volumes_are_at_stake_on_an_engine_that_does_not_list_them() {
    let faults = "faults = [{ call = \"list_volumes\", error = \"error\" }]";
    let mut engine = Editable::start(faults);
    ready(&engine.api, "data", 1);
    engine.listed("reachable");
    let content = engine.edit(|_| Vec::new());
    engine.listed("outage: ");
    wharf_tests::observed(&engine.api, "one", 5).unwrap();
    engine.listed("outage: ");
    engine.put(&content);
    engine.listed("reachable");
    assert_eq!(one(&engine.api, "data").is(200)["state"], "ready");
}

#[test]
fn a_failure_on_another_store_fails_no_volume() {
    // The node is not looked at by itself between the change of its store and the calls.
    let top = "provisioning_deadline_s = 1\n[limits]\nobserve_every_ms = 60000\n";
    let rules = (2..12).map(|nth| format!("{{ call = \"make\", error = \"error\", nth = {nth} }}"));
    let faults = format!("faults = [{}], ", rules.collect::<Vec<_>>().join(", "));
    let node = Node::start_on(top, &faults);
    ready(&node.api, "data", 1);
    node.on("other-store");
    create(&node.api, "later", 1).is(201);
    node.listed("outage: ");
    assert_eq!(one(&node.api, "later").is(200)["state"], "creating");
    node.off("other-store");
    delete(&node.api, "later").is(204);
    until_used(&node.api, "n_volumes", 1);
}
