//! Restores of stopped instances.

use super::{
    count, delete, events, one, ready, restore, stopped, take, until_count, until_event,
    until_free, until_state,
};
use crate::moves::machines;
use crate::outage::Node;
use crate::{Expected, has, kill, start_on, start_under, start_with, until_used, uuid, wait_until};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use wharf_tests::{lasting_node, simulated_node};

/// The snapshot that the engine's disk of an instance was made from last, by the engine's file.
fn disk_of(engine: &Path, instance: &Value) -> Value {
    machines(engine)[uuid(instance)]["disk_of"].clone()
}

#[test]
fn an_instance_is_restored_after_kills() {
    let settings = "snapshots = \"copied\", restore_ms = 150, latency_ms = 20";
    let (node, dir) = lasting_node("one", settings).unwrap();
    let engine = dir.path().join("engine");
    let (mut server, mut api) = start_on("", &node);
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    for (n, pause) in (1..).zip([0, 80]) {
        restore(&api, &taken, false).is(200);
        wharf_tests::interval(Duration::from_millis(pause));
        api = kill(&mut server, &api);
        until_count(&api, &instance, "restored", n);
        assert_eq!(disk_of(&engine, &instance), taken["id"]);
    }
    assert_eq!(count(&api, &instance, "restored"), 2);
    assert_eq!(count(&api, &instance, "restore-failed"), 0);
    // The end of a restore is not the end of a run.
    assert_eq!(count(&api, &instance, "released"), 1);
    api.act(uuid(&instance), "restart").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
}

#[test]
fn a_restart_waits_for_the_restore() {
    // One call of a driver may restore for longer than a request waits.
    let long = "faults = [{ call = \"restore\", error = \"late\", after_ms = 8000 }]";
    for (wait_ms, slow) in [(300, "restore_ms = 2000"), (6000, long)] {
        let brief = format!("[limits]\nanswer_wait_ms = {wait_ms}\n");
        let (server, api) = start_under(&brief, slow);
        let instance = stopped(&api);
        let taken = ready(&api, &instance, "before");
        restore(&api, &taken, false).is(200);
        let restarted = api.act(uuid(&instance), "restart").is(200);
        has(&restarted["message"], "snapshot");
        until_count(&api, &instance, "ready", 2);
        let kinds = events(&api, &instance);
        let at = |kind: &str| kinds.iter().rposition(|known| known == kind).unwrap();
        assert!(at("restored") < at("ready"), "{kinds:?}");
        assert!(at("restarted") < at("restored"), "{kinds:?}");
        assert_eq!(count(&api, &instance, "restored"), 1);
        let log = server.log();
        let calls = log
            .lines()
            .filter(|line| line.contains("function=\"restore\"") && line.contains("call ended"));
        assert!(slow != long || calls.count() == 1, "{log}");
    }
}

#[test]
fn a_stop_during_the_restore_leaves_it_to_be_done() {
    let (_server, api) = start_with("restore_ms = 600");
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, false).is(200);
    api.act(uuid(&instance), "restart").is(200);
    api.act(uuid(&instance), "stop").is(200);
    until_event(&api, &instance, "restored");
    wait_until("the instance has settled", || {
        let now = api.instance(uuid(&instance)).is(200);
        Ok((now["state"] == "exited").then_some(()))
    });
    let usage = api.get("/api/usage/").is(200);
    assert!(usage["hourly_usd"].as_f64().unwrap() < 0.01, "{usage}");
}

#[test]
fn a_second_restore_waits_for_no_first() {
    let (_server, api) = start_with("restore_ms = 600");
    let instance = stopped(&api);
    let (first, second) = (
        ready(&api, &instance, "first"),
        ready(&api, &instance, "second"),
    );
    restore(&api, &first, false).is(200);
    restore(&api, &second, false).is(400);
    // Its snapshot stays meanwhile.
    delete(&api, &first).is(400);
    until_event(&api, &instance, "restored");
    restore(&api, &second, false).is(200);
    delete(&api, &first).is(204);
}

#[test]
fn no_snapshot_of_the_present_disk_is_taken_during_a_stop() {
    let brief = "[limits]\nanswer_wait_ms = 300\n";
    let faults = "faults = [{ call = \"stop\", error = \"late\", after_ms = 3000, nth = 1 }]";
    let (_server, api) = start_under(brief, faults);
    let instance = crate::running(&api);
    let taken = ready(&api, &instance, "before");
    api.act(uuid(&instance), "stop").is(200);
    let refused = restore(&api, &taken, true).is(400);
    has(&refused["detail"], "still under way");
    until_event(&api, &instance, "released");
    restore(&api, &taken, true).is(200);
    until_event(&api, &instance, "restored");
}

#[test]
fn a_restore_without_the_snapshot_before_leaves_the_disk() {
    let faults =
        (2..12).map(|nth| format!("{{ call = \"take\", error = \"error\", nth = {nth} }}"));
    let faults = faults.collect::<Vec<_>>().join(", ");
    let node = simulated_node("one", &format!("faults = [{faults}]"));
    let (server, api) = start_on("provisioning_deadline_s = 1\n", &node);
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, true).is(200);
    until_event(&api, &instance, "restore-failed");
    has(
        server.cli(&["events", uuid(&instance)]).unwrap(),
        "present disk",
    );
    assert_eq!(count(&api, &instance, "restored"), 0);
    let log = server.log();
    assert!(!log.contains("request=\"restore\""), "{log}");
    api.act(uuid(&instance), "restart").is(200);
}

#[test]
fn an_instance_that_cannot_be_restored_stays_stopped() {
    let faults = "faults = [{ call = \"restore\", error = \"error\" }]";
    let node = simulated_node("one", faults);
    let (_server, api) = start_on("provisioning_deadline_s = 3\n", &node);
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, false).is(200);
    let failed = until_event(&api, &instance, "restore-failed");
    has(&failed["message"], "Look at the disk");
    let now = api.instance(uuid(&instance)).is(200);
    assert_eq!(now["state"], "exited");
    // The snapshot and the disk can be used again.
    restore(&api, &taken, false).is(200);
    api.act(uuid(&instance), "restart").is(502);
    until_count(&api, &instance, "restore-failed", 2);
    wait_until("the instance is stopped", || {
        let now = api.instance(uuid(&instance)).is(200);
        Ok((now["state"] == "exited").then_some(()))
    });
    api.act(uuid(&instance), "restart").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    delete(&api, &taken).is(204);
}

#[test]
fn an_engine_that_fails_for_a_while_is_asked_again() {
    let faults =
        (1..6).map(|nth| format!("{{ call = \"restore\", error = \"error\", nth = {nth} }}"));
    let faults = faults.collect::<Vec<_>>().join(", ");
    let (_server, api) = start_with(&format!("faults = [{faults}]"));
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, false).is(200);
    until_event(&api, &instance, "restored");
    assert_eq!(count(&api, &instance, "restore-failed"), 0);
}

#[test]
fn a_deletion_abandons_the_restore() {
    for first in [false, true] {
        let settings = "restore_ms = 100000, snapshots = \"copied\", snapshot_ms = 200";
        let (_server, api) = start_with(settings);
        let instance = stopped(&api);
        let taken = ready(&api, &instance, "before");
        restore(&api, &taken, first).is(200);
        api.delete(uuid(&instance)).is(204);
        until_event(&api, &instance, "purged");
        one(&api, &taken).is(404);
        until_free(&api);
    }
}

#[test]
fn an_outage_holds_up_a_restore() {
    let node = Node::start_with("[limits]\nobserve_every_ms = 100\nanswer_wait_ms = 300\n");
    let instance = stopped(&node.api);
    let taken = ready(&node.api, &instance, "before");
    node.on("other-store");
    node.listed("outage: ");
    restore(&node.api, &taken, false).is(200);
    wharf_tests::observed(&node.api, "one", 10).unwrap();
    let kinds = events(&node.api, &instance);
    assert!(
        !kinds.iter().any(|kind| kind.starts_with("restore")),
        "{kinds:?}"
    );
    node.off("other-store");
    until_event(&node.api, &instance, "restored");
}

#[test]
fn a_restored_instance_needs_its_snapshot_where_snapshots_are_copies() {
    let (_server, api) = start_with("snapshots = \"copied\"");
    let instance = stopped(&api);
    let (base, other) = (
        ready(&api, &instance, "base"),
        ready(&api, &instance, "other"),
    );
    restore(&api, &base, false).is(200);
    until_event(&api, &instance, "restored");
    delete(&api, &base).is(204);
    one(&api, &base).is(404);
    super::holds(&api, 2);
    // The disk is that of another snapshot.
    restore(&api, &other, false).is(200);
    until_count(&api, &instance, "restored", 2);
    until_used(&api, "n_snapshots", 1);
    let again = take(&api, &instance, "again").is(201);
    until_state(&api, &again, "ready");
}
