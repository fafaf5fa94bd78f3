//! Nodes that do not hold the sizes of disks and volumes.

use crate::bill::fake_clock;
use crate::moves::Cluster;
use crate::snapshots::{clone, plans, ready, restore, stopped, until_event};
use crate::{
    Expected, has, made, start_on, until_logged, until_says, until_true, uuid, wait_until, with,
};
use serde_json::json;
use std::fs;
use wharf_tests::{Api, Ports, Server, lasting_node, metric, small};

/// The reason in a shortage.
const WHY: &str =
    "A host takes nothing new at present, because it does not hold the sizes of disks.";

/// Starts a server with a node whose limits are broken while the file exists.
fn start(settings: &str) -> (Server, Api, std::path::PathBuf) {
    let (_, dir) = lasting_node("one", "").unwrap();
    let broken = dir.path().join("broken");
    fs::write(&broken, "").unwrap();
    let settings = format!("break_limits_while = \"{}\"{settings}", broken.display());
    let node = wharf_tests::simulated_node("one", &settings);
    let (server, api) = start_on("", &node);
    (server.keeping(dir), api, broken)
}

#[test]
fn a_node_that_does_not_hold_sizes_takes_nothing_new_until_it_does() {
    let (mut server, api, broken) = start("");
    until_says(&server, &["node", "list"], "limits broken, reachable");
    let list = server.cli(&["node", "list"]).unwrap();
    has(
        &list,
        "node one does not hold the sizes of disks and volumes, and takes nothing new: simulated breach, since 2",
    );
    until_logged(&server, "the node does not hold the sizes");
    has(
        server.cli(&["check"]).unwrap(),
        "`node.one.endpoint`: the engine does not hold the sizes",
    );
    let operator = server.user("op@example.com").unwrap();
    let gauge = "wharf_node_limits_broken{node=\"one\"}";
    assert_eq!(metric(&operator, gauge).unwrap(), 1.0);
    let refused = api.create(&with("container", json!({}))).is(422);
    has(&refused["detail"]["message"], WHY);
    let volume = json!({ "name": "data", "size_gib": 1 });
    let refused = api.send("POST", "/api/volume/", &volume).is(400);
    has(&refused["detail"], "does not hold the sizes of disks");

    // It is durable, and holds before the first proof of the next start.
    server.kill().unwrap();
    has(server.cli(&["node", "list"]).unwrap(), "limits broken");
    server.run().unwrap();
    let api = server.again(&api);
    api.create(&with("container", json!({}))).is(422);

    fs::remove_file(&broken).unwrap();
    until_true("a proof succeeds", || {
        !server.cli(&["node", "list"]).unwrap().contains("broken")
    });
    let operator = server.again(&operator);
    assert_eq!(metric(&operator, gauge).unwrap(), 0.0);
    made(&api, &with("container", json!({})));
    api.send("POST", "/api/volume/", &volume).is(201);
    until_logged(&server, "the node holds the sizes of disks");
}

#[test]
fn a_node_that_does_not_hold_sizes_takes_snapshots_and_no_instance_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    let breaks = format!(
        "content = true, break_limits_while = \"{}\"",
        broken.display()
    );
    let nodes = [("one", "content = true"), ("two", breaks.as_str())];
    let mut cluster = Cluster::start_with(&nodes, |node| node);
    cluster.drain("two");
    let other = cluster.running(&small("container"));
    cluster.server.cli(&["node", "resume", "two"]).unwrap();
    cluster.drain("one");
    let source = cluster.running(&small("container"));
    cluster.server.cli(&["node", "resume", "one"]).unwrap();
    cluster.api.act(uuid(&other), "stop").is(200);
    cluster.api.wait_for(uuid(&other), "exited").unwrap();
    fs::write(&broken, "").unwrap();
    cluster.restart_server();
    until_says(&cluster.server, &["node", "list"], "limits broken");

    let taken = ready(&cluster.api, &source, "before");
    let refused = clone(&cluster.api, &taken).is(422);
    has(&refused["detail"]["message"], WHY);
    // The start of the server has to have seen both nodes.
    wait_until("the move is refused with the reason", || {
        let refused = cluster.server.cli(&["move", uuid(&other), "two"]);
        let why = refused.unwrap_err().to_string();
        Ok(why
            .contains("does not hold the sizes of disks")
            .then_some(()))
    });
    cluster.away(0, true);
    until_says(&cluster.server, &["node", "list"], "out of reach");
    let lost = ["node", "lost", "one", "--yes"];
    cluster.server.cli(&lost).unwrap();
    let refused = cluster.api.act(uuid(&other), "recreate").is(422);
    has(&refused["detail"]["message"], WHY);

    fs::remove_file(&broken).unwrap();
    wait_until("a proof succeeds", || {
        let list = cluster.server.cli(&["node", "list"])?;
        Ok((!list.contains("limits broken")).then_some(()))
    });
    cluster.api.act(uuid(&other), "recreate").is(200);
    let cloned = clone(&cluster.api, &taken).is(201);
    for instance in [&other, &cloned] {
        cluster.api.wait_for(uuid(instance), "running").unwrap();
    }
    cluster.away(0, false);
    until_true("the lost instance is removed", || {
        cluster.machines(0).is_empty()
    });
    cluster.finish();
}

#[test]
fn a_breach_ends_when_the_node_can_prove_nothing_any_more() {
    let faults = ", faults = [{ call = \"prove_limits\", error = \"unsupported\", nth = 3 }]";
    let (server, _api, _broken) = start(faults);
    until_says(&server, &["node", "list"], "limits broken, reachable");
    until_logged(
        &server,
        "the node cannot prove any more that it holds sizes",
    );
    until_true("the node takes new things", || {
        !server.cli(&["node", "list"]).unwrap().contains("broken")
    });
}

#[test]
fn a_proof_without_a_result_says_nothing_of_the_limits() {
    let faults = ", faults = [{ call = \"prove_limits\", error = \"error\" }]";
    let (server, api, _broken) = start(faults);
    made(&api, &with("container", json!({})));
    assert!(!server.cli(&["node", "list"]).unwrap().contains("broken"));
    // The operator hears that nothing proves them.
    let unproven = "node one: nothing proves that it holds the sizes of disks and volumes: ";
    until_says(&server, &["node", "list"], unproven);
    has(
        server.cli(&["check"]).unwrap(),
        "`node.one.endpoint`: nothing proves that the engine holds the sizes",
    );
}

#[test]
fn a_node_proves_its_limits_each_day_and_after_a_restore() {
    let Some(clock) = fake_clock() else { return };
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    let node = format!("break_limits_while = \"{}\"", broken.display());
    let settings = Ports::take().settings() + &wharf_tests::simulated_node("one", &node);
    let server = Server::start_in(&settings, &clock.environment())
        .unwrap()
        .checked_at_end();
    let api = server.user("ann@example.com").unwrap();
    let breaks = || until_says(&server, &["node", "list"], "limits broken");
    let proofs = "wharf_plugin_call_duration_seconds_count{function=\"prove-limits\"";
    until_true("the first proof has ended", || {
        metric(&api, proofs).unwrap() > 0.0
    });
    // The day passes by Wharf's own clock.
    fs::write(&broken, "").unwrap();
    plans::pass(&server, &clock, 25);
    breaks();
    fs::remove_file(&broken).unwrap();
    until_true("a proof succeeds", || {
        !server.cli(&["node", "list"]).unwrap().contains("broken")
    });
    let instance = stopped(&api);
    let snapshot = ready(&api, &instance, "before");
    restore(&api, &snapshot, false).is(200);
    until_event(&api, &instance, "restored");
    fs::write(&broken, "").unwrap();
    plans::pass(&server, &clock, 26);
    breaks();
    drop(clock);
}
