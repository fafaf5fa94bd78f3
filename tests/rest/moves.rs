//! Moves of instances from drained nodes to other nodes of their cluster.

mod addresses;
mod cluster;
mod copies;

pub use cluster::{Cluster, machines};

use crate::{Expected, has, recorded, until_true, uuid, wait_until, with};
use serde_json::{Value, json};
use wharf_tests::{small, until};

fn sized(n_vcpus: u32, disk_size_gib: u32) -> Value {
    with(
        "container",
        json!({ "n_vcpus": n_vcpus, "disk_size_gib": disk_size_gib }),
    )
}

fn position(events: &[String], kind: &str) -> usize {
    let found = events.iter().position(|event| event == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

#[test]
fn a_stopped_instance_moves_with_its_disk_and_starts_on_the_other_node() {
    let cluster = Cluster::start(&[("one", ""), ("two", "")]);
    let (stopped, vm) = (
        cluster.stopped(&sized(2, 100)),
        cluster.running(&small("vm")),
    );
    let api = &cluster.api;
    let used = api.get("/api/quota/").unwrap().body;
    assert!(cluster.machines(0).contains_key(uuid(&stopped)));
    assert!(cluster.machines(1).contains_key(uuid(&vm)));
    let left = cluster.drain("one");
    assert!(left.contains("instances left: 1"), "{left}");
    cluster.drained("one", "instances left: 0");
    let moved = cluster.now(&stopped);
    assert_eq!(moved["state"], "exited");
    let machine = &cluster.machines(1)[uuid(&stopped)];
    assert_eq!(machine["wanted"]["address"], moved["lan_ipv4"]);
    assert_eq!(machine["wanted"]["disk_size_gib"], 100);
    assert!(cluster.machines(0).is_empty());
    // The login host is one for all nodes, so that the port stays.
    for same in [
        "name",
        "wan_ssh_port",
        "webapp_url",
        "original_service_password",
        "created_at",
    ] {
        assert_eq!(moved[same], stopped[same], "{same}");
    }
    assert_ne!(moved["lan_ipv4"], stopped["lan_ipv4"]);
    assert_eq!(api.get("/api/quota/").unwrap().body, used);
    let path = format!("/api/event/?after=0&instance={}", uuid(&stopped));
    let events = api.get(&path).is(200);
    let event = events.as_array().unwrap().last().unwrap();
    assert_eq!(event["type"], "moved");
    assert_eq!(event["state"], "exited");
    let message = event["message"].as_str().unwrap();
    has(message, moved["lan_ipv4"].as_str().unwrap());
    assert!(
        !message.contains("two"),
        "nodes are the operator's: {message}"
    );
    let audit = cluster.server.cli(&["audit"]).unwrap();
    assert!(audit.contains("instance.move"), "{audit}");

    api.act(uuid(&stopped), "restart").is(200);
    api.wait_for(uuid(&stopped), "running").unwrap();
    // A virtual machine has the public addresses of its node.
    api.act(uuid(&vm), "stop").is(200);
    cluster.server.cli(&["node", "resume", "one"]).unwrap();
    cluster.drain("two");
    let moved = until("the VM has moved", || {
        Ok(cluster
            .machines(0)
            .contains_key(uuid(&vm))
            .then(|| cluster.now(&vm)))
    });
    let moved = until("the move is known", || {
        let now = cluster.now(&vm);
        Ok((now["public_ipv4"] != vm["public_ipv4"]).then_some(now))
    })
    .and(moved)
    .map(|_| cluster.now(&vm))
    .unwrap();
    assert_eq!(moved["public_ipv4"], "203.0.113.2");
    assert_eq!(moved["wan_ports"], json!([22]));
    cluster.finish();
}

#[test]
fn nodes_without_a_cluster_keep_their_instances() {
    let cluster = Cluster::start_with(&[("one", ""), ("two", "")], |node| node);
    let stopped = cluster.stopped(&small("container"));
    let left = cluster.drain("one");
    has(&left, "stays: the node has no other one in its cluster");
    assert_eq!(cluster.now(&stopped), stopped);
    cluster.finish();
}

#[test]
fn a_running_instance_stays_unless_its_owner_permits_the_move() {
    let cluster = Cluster::start(&[("one", ""), ("two", "")]);
    let running = cluster.running(&sized(4, 10));
    let left = cluster.drain("one");
    has(
        left,
        "stays: runs, and its owner does not let it be stopped",
    );
    assert_eq!(cluster.now(&running)["state"], "running");
    assert_eq!(cluster.events(&running).last().unwrap(), "node-drained");
    // A second drain does not repeat the event.
    cluster.drain("one");
    let told = cluster.events(&running);
    assert_eq!(
        told.iter().filter(|kind| *kind == "node-drained").count(),
        1
    );
    assert!(
        cluster
            .server
            .cli(&["user", "allow-moves", "nobody@example.com"])
            .is_err()
    );
    let preferences = |body: Option<Value>| {
        let method = if body.is_some() { "PATCH" } else { "GET" };
        let body = body.unwrap_or_default();
        let answer = cluster.api.send(method, "/api/preferences/", &body);
        answer.is(200)
    };
    assert_eq!(preferences(None), json!({ "allow_moves": false }));
    let permitted = json!({ "allow_moves": true });
    assert_eq!(preferences(Some(permitted.clone())), permitted);
    cluster.drained("one", "instances left: 0");
    let moved = cluster.api.wait_for(uuid(&running), "running").unwrap();
    assert_ne!(moved["lan_ipv4"], running["lan_ipv4"]);
    wait_until("it runs on the other node", || {
        let machine = cluster.machines(1).remove(uuid(&running));
        Ok(machine.filter(|machine| machine["life"]["Running"].is_object()))
    });
    until_true("it is ready", || {
        cluster.events(&running).last().unwrap() == "ready"
    });
    let events = cluster.events(&running);
    assert!(
        position(&events, "moving") < position(&events, "moved"),
        "{events:?}"
    );
    let records = recorded(&cluster.api, "user.moves");
    assert_eq!(records.last().unwrap()["result"], "permitted");
    cluster
        .server
        .cli(&["user", "refuse-moves", "ann@example.com"])
        .unwrap();
    assert_eq!(preferences(None), json!({ "allow_moves": false }));
    cluster.server.cli(&["node", "resume", "one"]).unwrap();
    assert!(cluster.drain("two").contains("stays: runs"));
    // Once its owner stops it, it moves.
    cluster.api.act(uuid(&running), "stop").is(200);
    cluster.drained("two", "instances left: 0");
    cluster.finish();
}

#[test]
fn an_instance_waits_for_room_elsewhere() {
    let cluster = Cluster::start_with(&[("one", ""), ("two", "")], |node| {
        let node = format!("{node}cluster = \"east\"\n");
        if node.contains("name = \"two\"") {
            node.replace("disk_size_gib = 500", "disk_size_gib = 50")
        } else {
            node
        }
    });
    // Node one has more headroom for both.
    let (large, little) = (
        cluster.stopped(&sized(1, 60)),
        cluster.stopped(&sized(1, 10)),
    );
    assert_eq!(cluster.machines(0).len(), 2);
    cluster.drain("one");
    let left = cluster.drained("one", "instances left: 1");
    has(&left, "no other node has room");
    assert!(
        left.contains(uuid(&large)) && !left.contains(uuid(&little)),
        "{left}"
    );
    // Its node is drained, so that it cannot start either; its owner can delete it.
    cluster.api.act(uuid(&large), "restart").is(422);
    cluster.delete(&large);
    cluster.drained("one", "instances left: 0");
    cluster.finish();
}

#[test]
fn a_moving_instance_can_be_deleted_and_renamed_but_not_started() {
    let cluster = Cluster::start(&[("one", ""), ("two", "move_ms = 3000")]);
    let (kept, deleted) = (
        cluster.stopped(&small("container")),
        cluster.stopped(&small("container")),
    );
    let on_one = [&kept, &deleted];
    assert!(
        on_one
            .iter()
            .any(|i| cluster.machines(0).contains_key(uuid(i)))
    );
    cluster.server.cli(&["node", "drain", "two"]).unwrap();
    cluster.drained("two", "instances left: 0");
    cluster.server.cli(&["node", "resume", "two"]).unwrap();
    cluster.drain("one");
    until_true("both move", || {
        cluster.drain("one").matches("\tmoving").count() == 2
    });
    let refused = cluster.api.act(uuid(&kept), "restart").is(400);
    has(&refused["detail"], "moves to another host");
    let larger = cluster
        .api
        .patch(uuid(&kept), &json!({ "n_vcpus": 2 }))
        .unwrap();
    larger.is(400);
    let renamed = json!({ "name": "moved-there" });
    cluster.api.patch(uuid(&kept), &renamed).is(200);
    cluster.delete(&deleted);
    cluster.drained("one", "instances left: 0");
    wait_until("the deleted one is gone", || {
        let all = [cluster.machines(0), cluster.machines(1)];
        Ok((!all.iter().any(|node| node.contains_key(uuid(&deleted)))).then_some(()))
    });
    assert_eq!(cluster.now(&kept)["name"], "moved-there");
    cluster.api.act("moved-there", "restart").is(200);
    cluster.finish();
}

#[test]
fn a_move_that_fails_leaves_the_instance_where_it_ran() {
    let faults = "faults = [{ call = \"move_here\", error = \"error\" }]";
    let cluster = Cluster::start(&[("one", ""), ("two", faults)]);
    cluster
        .server
        .cli(&["user", "allow-moves", "ann@example.com"])
        .unwrap();
    let running = cluster.running(&small("container"));
    cluster.drain("one");
    wait_until("the move has failed", || {
        let events = cluster.events(&running);
        let failed = events.iter().position(|kind| kind == "move-failed");
        Ok(failed.filter(|at| events[*at..].contains(&"ready".to_owned())))
    });
    let now = cluster.now(&running);
    for same in ["lan_ipv4", "wan_ssh_port", "state"] {
        assert_eq!(now[same], running[same], "{same}");
    }
    assert!(cluster.machines(0)[uuid(&running)]["life"]["Running"].is_object());
    let log = cluster.server.cli(&["events", uuid(&running)]).unwrap();
    assert!(log.contains("simulated failure"), "{log}");
    cluster.finish();
}

#[test]
fn a_destination_out_of_reach_ends_the_move() {
    let cluster = Cluster::start(&[("one", ""), ("two", "move_ms = 600000")]);
    let stopped = cluster.stopped(&small("container"));
    cluster.drained("one", "\tmoving");
    cluster.away(1, true);
    cluster.drained("one", "no other node of the cluster is in reach");
    assert_eq!(cluster.events(&stopped).last().unwrap(), "move-failed");
    cluster.server.cli(&["node", "resume", "one"]).unwrap();
    cluster.api.act(uuid(&stopped), "restart").is(200);
    cluster.away(1, false);
    cluster.finish();
}

#[test]
fn kills_neither_lose_nor_double_an_instance() {
    let slow = "move_ms = 60, latency_ms = [0, 30]";
    let mut cluster = Cluster::start(&[("one", slow), ("two", slow), ("three", slow)]);
    cluster
        .server
        .cli(&["user", "allow-moves", "ann@example.com"])
        .unwrap();
    let instances = cluster.mixed(6);
    cluster.drain_under_kills(&["one", "two", "three"], 3);
    cluster.drained("three", "instances left: 0");
    assert!(cluster.machines(2).is_empty());
    for (n, instance) in instances.iter().enumerate() {
        let state = if n % 2 == 0 { "running" } else { "exited" };
        wait_until(&format!("{n} is {state} and settled"), || {
            let running = |node| {
                let machine = cluster.machines(node).remove(uuid(instance));
                machine.is_some_and(|machine| machine["life"]["Running"].is_object())
            };
            let runs = (0..3).filter(|node| running(*node)).count();
            let now = cluster.now(instance);
            Ok((now["state"] == state && runs == usize::from(n % 2 == 0)).then_some(()))
        });
    }
    cluster.finish();
}
