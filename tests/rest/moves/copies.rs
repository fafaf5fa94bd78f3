//! Moves between nodes without a common cluster, by a copy of the content.

use super::{Cluster, position, sized};
use crate::{Expected, has, until_true, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::small;

/// Nodes whose engines know nothing of each other.
fn apart(nodes: &[(&str, &str)]) -> Cluster {
    let own: Vec<_> = nodes
        .iter()
        .map(|(name, own)| (*name, content(own)))
        .collect();
    let own: Vec<_> = own
        .iter()
        .map(|(name, own)| (*name, own.as_str()))
        .collect();
    Cluster::start_with(&own, |node| node)
}

fn content(own: &str) -> String {
    let more = if own.is_empty() { "" } else { ", " };
    format!("content = true{more}{own}")
}

fn allow(cluster: &Cluster) {
    let allow = ["user", "allow-moves", "ann@example.com"];
    cluster.server.cli(&allow).unwrap();
}

fn move_to(cluster: &Cluster, instance: &Value, node: &str) -> String {
    let moved = cluster.server.cli(&["move", uuid(instance), node]);
    moved.unwrap()
}

/// The number of the node that has the instance.
fn place(cluster: &Cluster, instance: &Value) -> usize {
    let is_on = |node: &usize| cluster.machines(*node).contains_key(uuid(instance));
    (0..2).find(is_on).unwrap()
}

fn arrived(cluster: &Cluster, instance: &Value, times: usize) {
    wait_until("it has moved", || {
        let events = cluster.events(instance);
        let moved = events.iter().filter(|kind| *kind == "moved").count();
        Ok((moved == times).then_some(()))
    })
}

const NAMES: [&str; 2] = ["one", "two"];

#[test]
fn an_instance_moves_with_its_content_and_leaves_nothing() {
    let cluster = apart(&[("one", ""), ("two", "")]);
    let stopped = cluster.stopped(&sized(2, 100));
    let from = place(&cluster, &stopped);
    let before = cluster.machines(from).remove(uuid(&stopped)).unwrap();
    let used = cluster.api.get("/api/quota/").unwrap().body;
    let begun = move_to(&cluster, &stopped, NAMES[1 - from]);
    has(&begun, "its content is copied");
    arrived(&cluster, &stopped, 1);
    assert!(cluster.machines(from).is_empty());
    let after = cluster.machines(1 - from).remove(uuid(&stopped)).unwrap();
    assert_eq!(after["cpu_ns"], before["cpu_ns"]);
    let incarnation = |machine: &Value| machine["wanted"]["incarnation"].as_u64().unwrap();
    assert!(incarnation(&after) > incarnation(&before));
    let moved = cluster.now(&stopped);
    for same in [
        "name",
        "wan_ssh_port",
        "original_service_password",
        "created_at",
        "state",
    ] {
        assert_eq!(moved[same], stopped[same], "{same}");
    }
    assert_ne!(moved["lan_ipv4"], stopped["lan_ipv4"]);
    assert_eq!(cluster.api.get("/api/quota/").unwrap().body, used);
    cluster.api.act(uuid(&stopped), "restart").is(200);
    let running = cluster.api.wait_for(uuid(&stopped), "running").unwrap();

    // A running one needs its owner's consent, for a drain too.
    let refused = cluster.server.cli(&["move", uuid(&stopped), NAMES[from]]);
    has(refused.unwrap_err(), "its owner does not let it be stopped");
    let left = cluster.drain(NAMES[1 - from]);
    has(
        left,
        "stays: runs, and its owner does not let it be stopped",
    );
    allow(&cluster);
    cluster.drained(NAMES[1 - from], "instances left: 0");
    let now = cluster.api.wait_for(uuid(&running), "running").unwrap();
    assert_eq!(now["name"], running["name"]);
    wait_until("it runs on the first node", || {
        let machine = cluster.machines(from).remove(uuid(&running));
        Ok(machine.filter(|machine| machine["life"]["Running"].is_object()))
    });
    let events = cluster.events(&running);
    assert!(
        position(&events, "moving") < position(&events, "moved"),
        "{events:?}"
    );
    cluster.finish();
}

#[test]
fn a_move_that_is_not_possible_is_refused_with_its_reason() {
    let cluster = apart(&[("one", ""), ("two", "late_attach = true")]);
    let stopped = cluster.stopped(&sized(1, 10));
    let from = place(&cluster, &stopped);
    let (here, there) = (NAMES[from], NAMES[1 - from]);
    let refused = |instance: &str, node: &str, why: &str| {
        let refused = cluster.server.cli(&["move", instance, node]);
        has(refused.unwrap_err(), why);
    };
    refused("nobox", there, "\"nobox\"");
    refused(uuid(&stopped), "three", "no node is called \"three\"");
    refused(uuid(&stopped), here, "is on node");
    let away = 1 - from;
    cluster.away(away, true);
    wait_until("the node is known to be out of reach", || {
        let nodes = cluster.server.cli(&["node", "list"])?;
        Ok(nodes.contains("out of reach").then_some(()))
    });
    refused(uuid(&stopped), there, "is not in reach");
    cluster.away(away, false);
    let snapshots = format!("/api/instance/{}/snapshot/", uuid(&stopped));
    cluster.api.send("POST", &snapshots, &json!({})).is(201);
    wait_until("the node is back, and the snapshot is named", || {
        let moved = cluster.server.cli(&["move", uuid(&stopped), there]);
        let why = moved.unwrap_err().to_string();
        let named = why.contains("has snapshots, which are on its node for good");
        Ok(named.then_some(()))
    });
    cluster.finish();

    let cluster = Cluster::start_with(&[("one", ""), ("two", "content = true")], |node| node);
    let stopped = cluster.stopped(&small("container"));
    let to = NAMES[1 - place(&cluster, &stopped)];
    let refused = cluster.server.cli(&["move", uuid(&stopped), to]);
    has(refused.unwrap_err(), "do not copy content to each other");
    cluster.finish();
}

#[test]
fn a_virtual_machine_stays_without_a_cluster() {
    let cluster = apart(&[("one", ""), ("two", "")]);
    let vm = cluster.running(&small("vm"));
    cluster.api.act(uuid(&vm), "stop").is(200);
    cluster.api.wait_for(uuid(&vm), "shut_off").unwrap();
    let from = place(&cluster, &vm);
    let refused = cluster.server.cli(&["move", uuid(&vm), NAMES[1 - from]]);
    let why = "a virtual machine moves only within a cluster";
    has(refused.unwrap_err(), why);
    has(cluster.drain(NAMES[from]), why);
    cluster.finish();
}

#[test]
fn a_copy_that_fails_goes_and_leaves_the_instance_where_it_ran() {
    // The content arrives, and the engine fails to say so.
    let faults =
        (2..40).map(|nth| format!("{{ call = \"fetch\", nth = {nth}, error = \"error\" }}"));
    let faults = format!("faults = [{}]", faults.collect::<Vec<_>>().join(", "));
    let cluster = apart(&[("one", ""), ("two", &faults)]);
    allow(&cluster);
    let running = cluster.running(&small("container"));
    if place(&cluster, &running) == 1 {
        move_to(&cluster, &running, "one");
        arrived(&cluster, &running, 1);
        cluster.api.wait_for(uuid(&running), "running").unwrap();
    }
    move_to(&cluster, &running, "two");
    wait_until("the move has failed, and it runs", || {
        let events = cluster.events(&running);
        let failed = events.iter().position(|kind| kind == "move-failed");
        Ok(failed.filter(|at| events[*at..].contains(&"ready".to_owned())))
    });
    assert!(cluster.machines(0)[uuid(&running)]["life"]["Running"].is_object());
    until_true("the copy is removed", || cluster.machines(1).is_empty());
    let log = cluster.server.cli(&["events", uuid(&running)]).unwrap();
    has(log, "simulated failure");
    cluster.finish();
}

#[test]
fn an_instance_deleted_during_its_copy_is_gone_from_both_nodes() {
    let cluster = apart(&[("one", "move_ms = 3000"), ("two", "move_ms = 3000")]);
    let stopped = cluster.stopped(&small("container"));
    let to = NAMES[1 - place(&cluster, &stopped)];
    move_to(&cluster, &stopped, to);
    cluster.delete(&stopped);
    wait_until("it is gone", || {
        let gone = cluster.machines(0).is_empty() && cluster.machines(1).is_empty();
        Ok(gone.then_some(()))
    });
    cluster.finish();
}

#[test]
fn a_node_out_of_reach_ends_the_copy() {
    // Both at once: each takes its time.
    let ends = |is_source: bool| {
        let slow = "move_ms = 600000";
        let cluster = apart(&[("one", slow), ("two", slow)]);
        let stopped = cluster.stopped(&small("container"));
        let from = place(&cluster, &stopped);
        move_to(&cluster, &stopped, NAMES[1 - from]);
        let node = if is_source { from } else { 1 - from };
        cluster.away(node, true);
        until_true("the move has failed", || {
            cluster.events(&stopped).last().unwrap() == "move-failed"
        });
        cluster.away(node, false);
        wait_until("it starts where it was", || {
            let restarted = cluster.api.act(uuid(&stopped), "restart")?;
            Ok((restarted.status == 200).then_some(()))
        });
        assert!(cluster.machines(from).contains_key(uuid(&stopped)));
        cluster.finish();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ends(true));
        ends(false);
    });
}

#[test]
fn an_empty_store_is_not_the_destination_of_a_move() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    let slow = format!(
        "move_ms = 600000, other_store_while = \"{}\"",
        empty.display()
    );
    let cluster = apart(&[("one", ""), ("two", &slow)]);
    let stopped = cluster.stopped(&small("container"));
    if place(&cluster, &stopped) == 1 {
        move_to(&cluster, &stopped, "one");
        arrived(&cluster, &stopped, 1);
    }
    move_to(&cluster, &stopped, "two");
    // No other instance shows that this store is not the node's own.
    std::fs::write(&empty, "").unwrap();
    wait_until("the node has an outage", || {
        let nodes = cluster.server.cli(&["node", "list"])?;
        Ok(nodes.contains("has lost its mark").then_some(()))
    });
    std::fs::remove_file(&empty).unwrap();
    cluster.delete(&stopped);
    wait_until("it is gone", || {
        let gone = cluster.machines(0).is_empty() && cluster.machines(1).is_empty();
        Ok(gone.then_some(()))
    });
    cluster.finish();
}

#[test]
fn kills_during_a_copy_neither_lose_nor_double_an_instance() {
    let slow = "move_ms = 60, latency_ms = [0, 30]";
    let mut cluster = apart(&[("one", slow), ("two", slow)]);
    allow(&cluster);
    let instances = cluster.mixed(4);
    cluster.drain_under_kills(&NAMES, 2);
    cluster.drained("two", "instances left: 0");
    until_true("node two is empty", || cluster.machines(1).is_empty());
    for (n, instance) in instances.iter().enumerate() {
        let state = if n % 2 == 0 { "running" } else { "exited" };
        cluster.api.wait_for(uuid(instance), state).unwrap();
    }
    cluster.finish();
}
