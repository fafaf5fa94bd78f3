//! Snapshots through kills, faults of engines, outages and the loss of a node.

use super::{
    all, delete, events, one, ready, restore, stop, stopped, take, until_event, until_free,
    until_state, used,
};
use crate::fsck::{bytes, edit};
use crate::moves::Cluster;
use crate::outage::Node;
use crate::{
    Expected, has, kill, running, start_lasting, start_with, until_logged, until_says, until_true,
    until_used, uuid, wait_until,
};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Api, Server};

#[test]
fn snapshots_are_taken_and_removed_after_kills() {
    let settings = "snapshots = \"copied\", snapshot_ms = 150, latency_ms = 20";
    let (mut server, mut api) = start_lasting(settings);
    let instance = running(&api);
    for pause in [0, 60] {
        let taken = take(&api, &instance, "before").is(201);
        wharf_tests::interval(Duration::from_millis(pause));
        api = kill(&mut server, &api);
        until_state(&api, &taken, "ready");
        delete(&api, &taken).is(204);
        wharf_tests::interval(Duration::from_millis(pause));
        api = kill(&mut server, &api);
        one(&api, &taken).is(404);
        until_free(&api);
    }
    let log = server.log();
    assert!(!log.contains("cannot be made"), "{log}");
    assert!(!log.contains("without a row"), "{log}");
}

/// Fails a snapshot, and looks at what is left of it.
fn fails(settings: &str) {
    let node = wharf_tests::simulated_node("one", settings);
    let (server, api) = crate::start_on("provisioning_deadline_s = 1\n", &node);
    let instance = running(&api);
    let taken = take(&api, &instance, "before").is(201);
    let failed = until_state(&api, &taken, "error");
    has(&failed["reason"], "could not take");
    assert_eq!(failed["size_gib"], Value::Null);
    has(events(&api, &instance).join(" "), "snapshot-failed");
    // The engine was seen without it.
    assert_eq!(used(&api, "snapshot_gib"), 0);
    let usage = api.get("/api/usage/").is(200);
    let costs = usage["snapshots"].as_array().unwrap().iter();
    assert!(costs.clone().all(|row| row["hourly_usd"] == 0.0), "{usage}");
    // What is left goes before the snapshot counts as failed: an engine may hold the instance still for it.
    let log = server.log();
    let first = |words: &str| {
        let line = log.lines().find(|line| line.contains(words));
        line.and_then(|line| line.split_whitespace().next())
    };
    let (dropped, failed) = (first("request=\"drop-snapshot\""), first("cannot be made"));
    assert!(
        dropped.is_some() && dropped < failed,
        "{dropped:?}, {failed:?}"
    );
    delete(&api, &taken).is(204);
    until_free(&api);
}

#[test]
fn a_snapshot_that_cannot_be_taken_is_in_error_and_free() {
    fails("refuse_snapshots = \"the disk is full\"");
    fails("faults = [{ call = \"take\", error = \"error\" }]");
    fails("faults = [{ call = \"take\", error = \"failed\" }]");
}

#[test]
fn snapshots_that_are_absent_from_an_accepted_engine_are_in_error() {
    let node = Node::start_with("[limits]\nobserve_every_ms = 100\n");
    let instance = running(&node.api);
    let kept = ready(&node.api, &instance, "kept");
    node.on("other-store");
    node.listed("outage: ");
    node.server.cli(&["node", "accept", "one"]).unwrap();
    let failed = until_state(&node.api, &kept, "error");
    has(&failed["reason"], "no more");
    until_event(&node.api, &instance, "snapshot-failed");
    // The own store returns, and the operator accepts it.
    node.off("other-store");
    node.listed("outage: ");
    node.server.cli(&["node", "accept", "one"]).unwrap();
    until_state(&node.api, &kept, "ready");
    delete(&node.api, &kept).is(204);
}

#[test]
fn snapshots_are_lost_with_their_node() {
    let cluster = Cluster::start(&[("one", ""), ("two", "")]);
    let (server, api) = (&cluster.server, &cluster.api);
    server.cli(&["node", "drain", "two"]).unwrap();
    let instance = running(api);
    let taken = ready(api, &instance, "before");
    server.cli(&["node", "resume", "two"]).unwrap();
    cluster.away(0, true);
    until_says(server, &["node", "list"], "out of reach");
    server.cli(&["node", "lost", "one", "--yes"]).unwrap();
    let lost = one(api, &taken).is(200);
    assert_eq!(lost["state"], "error");
    has(&lost["reason"], "failed for good");
    assert_eq!(used(api, "n_snapshots"), 0);
    // The instance that is created again elsewhere has another disk.
    api.act(uuid(&instance), "recreate").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    stop(api, &instance);
    restore(api, &taken, false).is(400);
    assert_eq!(one(api, &taken).is(200)["state"], "error");
    let again = ready(api, &instance, "after");
    delete(api, &taken).is(204);
    delete(api, &again).is(204);
    assert_eq!(all(api), [] as [Value; 0]);
}

#[test]
fn an_instance_that_is_created_again_does_not_wait_for_a_lost_copy() {
    let endless = "snapshots = \"copied\", snapshot_ms = 100000";
    let cluster = Cluster::start(&[("one", endless), ("two", "")]);
    let (server, api) = (&cluster.server, &cluster.api);
    server.cli(&["node", "drain", "two"]).unwrap();
    let instance = running(api);
    let taken = take(api, &instance, "before").is(201);
    until_asked(server, &taken);
    server.cli(&["node", "resume", "two"]).unwrap();
    cluster.away(0, true);
    until_says(server, &["node", "list"], "out of reach");
    server.cli(&["node", "lost", "one", "--yes"]).unwrap();
    assert_eq!(one(api, &taken).is(200)["state"], "error");
    api.act(uuid(&instance), "recreate").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    stop(api, &instance);
    until_event(api, &instance, "released");
}

#[test]
fn a_snapshot_without_a_row_is_removed() {
    let (mut server, api) = start_lasting("");
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    server.terminate().unwrap();
    edit(&server, |rows| {
        let id = bytes(taken["id"].as_str().unwrap());
        let key = [b"d", &id[..], &[0]].concat();
        assert!(rows.remove(&*key).unwrap().is_some());
    });
    drop(server.cli(&["fsck", "--repair", "--yes"]));
    server.run().unwrap();
    until_logged(&server, "snapshot without a row, removing it");
    let api = server.again(&api);
    assert_eq!(all(&api), [] as [Value; 0]);
    until_true("the engine is asked to remove it", || {
        server.log().contains("request=\"drop-snapshot\"")
    });
    // `fsck` goes on to miss the row.
    server.kill().unwrap();
}

#[test]
fn a_snapshot_that_its_engine_has_no_more_is_in_error_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let lost = dir.path().join("lost");
    let settings = format!("lose_snapshots_while = \"{}\"", lost.display());
    let node = wharf_tests::simulated_node("one", &settings);
    let (_server, api) = crate::start_on("[limits]\nobserve_every_ms = 100\n", &node);
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    std::fs::write(&lost, "").unwrap();
    let failed = until_state(&api, &taken, "error");
    has(&failed["reason"], "no more");
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["snapshots"][0]["hourly_usd"], 0.0);
    restore(&api, &taken, false).is(400);
    super::clone(&api, &taken).is(400);
    std::fs::remove_file(&lost).unwrap();
    until_state(&api, &taken, "ready");
    restore(&api, &taken, false).is(200);
    until_event(&api, &instance, "restored");
    let kinds = events(&api, &instance);
    let failed = kinds.iter().filter(|kind| *kind == "snapshot-failed");
    assert_eq!(failed.count(), 1, "{kinds:?}");
}

/// The ids in the requests for snapshots to the engine, by the log.
fn asked_to_take(server: &Server) -> Vec<String> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("method=PUT"));
    let ids = lines.filter_map(|line| line.split("/snapshots/").nth(1)?.split('?').next());
    ids.map(str::to_owned).collect()
}

/// Waits until the engine is taking a snapshot.
fn until_asked(server: &Server, snapshot: &Value) {
    wait_until("the engine takes the snapshot", || {
        let asked = asked_to_take(server);
        Ok(asked.iter().any(|id| snapshot["id"] == **id).then_some(()))
    });
}

#[test]
fn one_snapshot_is_taken_at_a_time_on_a_node() {
    let (server, api) = start_with("snapshots = \"copied\", snapshot_ms = 300");
    let (first, second) = (running(&api), running(&api));
    let taken = [
        take(&api, &first, "copy-a").is(201),
        take(&api, &second, "copy-b").is(201),
        take(&api, &first, "copy-c").is(201),
    ];
    for one in &taken {
        until_state(&api, one, "ready");
    }
    let mut asked = asked_to_take(&server);
    asked.dedup();
    let ids = taken.each_ref().map(|one| one["id"].as_str().unwrap());
    assert_eq!(asked, ids, "one at a time, in the order of requests");
    let at = |snapshot: &Value| {
        let ready = one(&api, snapshot).is(200)["ready_at"].clone();
        ready.as_str().unwrap().to_owned()
    };
    let order: Vec<_> = taken.iter().map(at).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_deleted_snapshot_that_cannot_go_holds_up_no_other() {
    let faults = "faults = [{ call = \"drop\", error = \"error\" }]";
    let settings = format!("snapshots = \"copied\", snapshot_ms = 1500, {faults}");
    let (server, api) = start_with(&settings);
    let (first, second) = (running(&api), running(&api));
    let taken = take(&api, &first, "copy-a").is(201);
    until_asked(&server, &taken);
    delete(&api, &taken).is(204);
    until_logged(&server, "a step of a snapshot failed");
    ready(&api, &second, "copy-b");
    // Nor does a stop wait for it.
    stop(&api, &first);
    until_event(&api, &first, "released");
}

/// The number of a request in the log.
fn asked(server: &Server, request: &str) -> usize {
    let words = format!("request=\"{request}\"");
    server.log().matches(&words).count()
}

/// Waits until a snapshot is ready, and fails if a request is in the log before.
fn never_before_ready(server: &Server, api: &Api, taken: &Value, request: &str, before: usize) {
    wait_until("the snapshot is ready", || {
        let now = asked(server, request);
        if one(api, taken).is(200)["state"] == "ready" {
            return Ok(Some(()));
        }
        assert_eq!(now, before, "{request}");
        Ok(None)
    });
}

#[test]
fn a_stop_and_a_restart_wait_for_the_snapshot_that_is_being_taken() {
    let (server, api) = start_with("snapshots = \"copied\", snapshot_ms = 700");
    let instance = running(&api);
    let taken = take(&api, &instance, "running").is(201);
    until_asked(&server, &taken);
    let before = asked(&server, "stop");
    api.act(uuid(&instance), "stop").is(200);
    never_before_ready(&server, &api, &taken, "stop", before);
    wait_until("the instance is stopped", || {
        let kinds = events(&api, &instance);
        Ok(kinds.contains(&"released".to_owned()).then_some(()))
    });
    let taken = take(&api, &instance, "stopped").is(201);
    until_asked(&server, &taken);
    let before = asked(&server, "start");
    api.act(uuid(&instance), "restart").is(200);
    never_before_ready(&server, &api, &taken, "start", before);
    api.wait_for(uuid(&instance), "running").unwrap();
    until_true("the instance was started", || {
        asked(&server, "start") > before
    });
}

#[test]
fn a_deletion_does_not_wait_for_the_snapshot_that_is_being_taken() {
    for kind in ["shared", "copied"] {
        let settings = format!("snapshots = \"{kind}\", snapshot_ms = 100000");
        let (server, api) = start_with(&settings);
        let instance = running(&api);
        let taken = take(&api, &instance, "before").is(201);
        until_asked(&server, &taken);
        api.delete(uuid(&instance)).is(204);
        one(&api, &taken).is(404);
        assert_eq!(api.get("/api/usage/").is(200)["hourly_usd"], 0.0);
        until_event(&api, &instance, "purged");
        until_free(&api);
        assert_eq!(super::count(&api, &instance, "snapshot-deleted"), 1);
    }
}

#[test]
fn an_instance_that_was_stopped_in_its_first_start_has_no_snapshot() {
    let (server, api) = start_with("ready_after_ms = 600000");
    let instance = api.small_container().unwrap();
    let id = uuid(&instance);
    server.cli(&["suspend", id, "--reason", "unpaid"]).unwrap();
    api.wait_for(id, "exited").unwrap();
    server.cli(&["resume", id]).unwrap();
    let refused = take(&api, &instance, "early").is(400);
    has(&refused["detail"], "first start");
}

/// A node whose copies, restores and volumes take a while.
fn slow_node() -> Node {
    let slow = "snapshots = \"copied\", snapshot_ms = 2000, restore_ms = 2000, volume_ms = 2000, ";
    Node::start_on("[limits]\nobserve_every_ms = 100\n", slow)
}

#[test]
fn a_suspension_of_the_owner_leaves_a_copy_and_a_restore_to_be_done() {
    let node = slow_node();
    let (server, api) = (&node.server, &node.api);
    let owner = ["--user", "ann@example.com"];
    let suspend = [&["suspend"][..], &owner, &["--reason", "unpaid"]].concat();
    let resume = [&["resume"][..], &owner].concat();
    let instance = running(api);
    let taken = take(api, &instance, "before").is(201);
    until_logged(server, "/snapshots/");
    // Wharf does not see the end of what the engine has begun.
    node.on("unreachable");
    server.cli(&suspend).unwrap();
    assert_eq!(one(api, &taken).is(200)["state"], "creating");
    node.off("unreachable");
    until_state(api, &taken, "ready");
    until_event(api, &instance, "released");
    server.cli(&resume).unwrap();

    restore(api, &taken, false).is(200);
    let asked = format!("/instances/{}/restore/", uuid(&instance));
    until_logged(server, &asked);
    node.on("unreachable");
    server.cli(&suspend).unwrap();
    assert_eq!(super::count(api, &instance, "restored"), 0);
    node.off("unreachable");
    until_event(api, &instance, "restored");
    let refused = api.act(uuid(&instance), "restart").is(400);
    has(&refused["detail"], "unpaid");
    server.cli(&resume).unwrap();
    api.act(uuid(&instance), "restart").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    assert_eq!(super::count(api, &instance, "restore-failed"), 0);
}

#[test]
fn a_limit_that_is_lowered_leaves_what_has_begun_to_be_done() {
    let node = slow_node();
    let (server, api) = (&node.server, &node.api);
    let instance = running(api);
    let taken = take(api, &instance, "before").is(201);
    let volume = |name: &str| {
        let body = json!({ "name": name, "size_gib": 1 });
        api.send("POST", "/api/volume/", &body).unwrap()
    };
    volume("data").is(201);
    until_logged(server, "/snapshots/");
    until_logged(server, "/volumes/");
    node.on("unreachable");
    let limit = ["user", "limit", "ann@example.com"];
    let none = ["--snapshots", "0", "--volumes", "0"];
    server.cli(&[&limit[..], &none].concat()).unwrap();
    let of_volume = || api.get("/api/volume/data/").is(200)["state"].clone();
    assert_eq!(one(api, &taken).is(200)["state"], "creating");
    assert_eq!(of_volume(), "creating");
    node.off("unreachable");
    until_state(api, &taken, "ready");
    until_true("the volume is ready", || of_volume() == "ready");
    has(take(api, &instance, "more").is(422), "quota");
    has(volume("more").is(422), "quota");
    stop(api, &instance);
    until_event(api, &instance, "released");
    // A snapshot of the present disk is a new one.
    has(restore(api, &taken, true).is(422), "quota");
    restore(api, &taken, false).is(200);
    until_event(api, &instance, "restored");
    api.send("DELETE", "/api/volume/data/", &Value::Null)
        .is(204);
    until_used(api, "n_volumes", 0);
}
