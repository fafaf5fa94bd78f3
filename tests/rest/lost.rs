//! `wharf node lost` and `recreate/`: a machine that does not come back.

use crate::moves::Cluster;
use crate::{Expected, has, until_says, until_true, uuid, wait_until, with};
use serde_json::{Value, json};
use wharf_tests::{Shell, observed, small};

/// A cluster whose first node has a stopped, a running and a deleted instance and a VM, and is out of reach.
struct Dead {
    cluster: Cluster,
    running: Value,
    stopped: Value,
    vm: Value,
    deleted: Value,
}

impl Dead {
    fn new() -> Self {
        let cluster = Cluster::start(&[("one", ""), ("two", "")]);
        cluster.server.cli(&["node", "drain", "two"]).unwrap();
        let named = with("container", json!({ "name": "precious", "n_vcpus": 3 }));
        let running = cluster.running(&named);
        let (stopped, vm) = (
            cluster.stopped(&small("container")),
            cluster.running(&small("vm")),
        );
        let deleted = cluster.running(&small("container"));
        cluster.server.cli(&["node", "resume", "two"]).unwrap();
        cluster.away(0, true);
        until_says(&cluster.server, &["node", "list"], "out of reach");
        cluster.delete(&deleted);
        Self {
            cluster,
            running,
            stopped,
            vm,
            deleted,
        }
    }

    fn bill(&self) -> String {
        self.cluster
            .server
            .cli(&["bill", "ann@example.com"])
            .unwrap()
    }

    fn used(&self) -> Value {
        let quota = self.cluster.api.get("/api/quota/").unwrap();
        quota.is(200)
    }

    fn recreate(&self, instance: &Value) -> wharf_tests::Answer {
        self.cluster.api.act(uuid(instance), "recreate").unwrap()
    }

    fn lose(&self) -> String {
        self.cluster
            .server
            .cli(&["node", "lost", "one", "--yes"])
            .unwrap()
    }
}

#[test]
fn a_node_out_of_reach_frees_nothing() {
    let dead = Dead::new();
    let (used, cluster) = (dead.used(), &dead.cluster);
    let before = dead.bill();
    observed(&cluster.api, "one", 10).unwrap();
    for (instance, state) in [
        (&dead.running, "running"),
        (&dead.stopped, "exited"),
        (&dead.vm, "running"),
    ] {
        assert_eq!(cluster.now(instance)["state"], state);
        let refused = dead.recreate(instance).is(400);
        has(&refused["detail"], "host was lost");
    }
    assert_eq!(dead.used(), used);
    assert_ne!(dead.bill(), before);
    // Without the operator's confirmation nothing happens either.
    assert!(cluster.server.cli(&["node", "lost", "one"]).is_err());
    cluster.away(0, false);
    until_true("the deletion is done", || {
        !cluster.machines(0).contains_key(uuid(&dead.deleted))
    });
    assert_eq!(cluster.now(&dead.running)["state"], "running");
    let refused = cluster
        .server
        .cli(&["node", "lost", "one", "--yes"])
        .unwrap_err();
    has(&refused, "node one is in reach");
    let refused = cluster
        .server
        .cli(&["node", "lost", "six", "--yes"])
        .unwrap_err();
    has(&refused, "no node is called");
    dead.cluster.finish();
}

#[test]
fn lost_instances_cost_nothing_and_are_created_again() {
    let mut dead = Dead::new();
    let lost = dead.lose();
    assert!(
        lost.contains("instances lost: 3") && lost.contains("precious"),
        "{lost}"
    );
    dead.cluster.restart_server();
    let cluster = &dead.cluster;
    for instance in [&dead.running, &dead.stopped, &dead.vm] {
        assert_eq!(cluster.now(instance)["state"], "error");
        assert_eq!(cluster.events(instance).last().unwrap(), "lost");
    }
    let (bill, used) = (dead.bill(), dead.used());
    let fields = used.as_object().unwrap();
    assert!(fields.values().all(|field| field["used"] == 0), "{used}");
    observed(&cluster.api, "two", 2).unwrap();
    assert_eq!(dead.bill(), bill);
    cluster.api.act(uuid(&dead.running), "restart").is(400);
    cluster.api.act(uuid(&dead.running), "stop").is(400);
    let path = format!("/api/instance/{}/add-port/", uuid(&dead.vm));
    cluster
        .api
        .send("POST", &path, &json!({ "port": 80 }))
        .is(400);

    // The name is still its own.
    let named = with("container", json!({ "name": "precious" }));
    cluster.api.create(&named).is(400);
    let shell = Shell::signed_in(&cluster.server, "ann@example.com").unwrap();
    let path = "/api/instance/precious/recreate/";
    let recreate = ["recreate", "precious", "--empty"];
    let again = shell.json(&recreate, "POST", path, 200);
    assert_eq!(again.unwrap()["state"], "provisioning");
    dead.recreate(&dead.running).is(400);
    let now = cluster.api.wait_for("precious", "running").unwrap();
    for same in [
        "uuid",
        "name",
        "n_vcpus",
        "mem_gib",
        "disk_size_gib",
        "flavor",
        "created_at",
        "original_service_password",
        "vcpu_cost_hourly_usd",
    ] {
        assert_eq!(now[same], dead.running[same], "{same}");
    }
    assert_ne!(now["lan_ipv4"], dead.running["lan_ipv4"]);
    assert!(cluster.machines(1).contains_key(uuid(&dead.running)));
    dead.recreate(&dead.vm).is(200);
    let vm = cluster.api.wait_for(uuid(&dead.vm), "running").unwrap();
    assert_eq!(vm["public_ipv4"], "203.0.113.18");
    cluster.delete(&dead.stopped);
    assert_ne!(dead.bill(), bill);

    // The machine returns: what is on it is of the past.
    assert_eq!(cluster.machines(0).len(), 4);
    cluster.away(0, false);
    until_true("the old instances are removed", || {
        cluster.machines(0).is_empty()
    });
    assert_eq!(cluster.now(&dead.running)["state"], "running");
    let list = cluster.server.cli(&["node", "list"]).unwrap();
    assert!(list.contains("drained"), "{list}");
    cluster.server.cli(&["node", "resume", "one"]).unwrap();
    cluster.running(&small("container"));
    assert_eq!(cluster.machines(0).len(), 1);
    let audit = cluster.server.cli(&["audit"]).unwrap();
    for operation in ["node.lost", "instance.lose", "instance.recreate"] {
        assert!(audit.contains(operation), "{audit}");
    }
    dead.cluster.finish();
}

#[test]
fn a_returned_machine_has_no_say_over_instances_that_nobody_created_again() {
    let dead = Dead::new();
    dead.lose();
    let cluster = &dead.cluster;
    cluster.away(0, false);
    until_true("the old instances are removed", || {
        cluster.machines(0).is_empty()
    });
    assert_eq!(cluster.now(&dead.running)["state"], "error");
    dead.recreate(&dead.running).is(200);
    cluster.api.wait_for("precious", "running").unwrap();
    for gone in [&dead.stopped, &dead.vm] {
        cluster.delete(gone);
        assert_eq!(cluster.api.instance(uuid(gone)).unwrap().status, 404);
    }
    dead.cluster.finish();
}

#[test]
fn a_lost_instance_needs_room_to_be_created_again() {
    let dead = Dead::new();
    let cluster = &dead.cluster;
    let whole = with("container", json!({ "n_vcpus": 14 }));
    cluster.server.cli(&["node", "drain", "one"]).unwrap();
    let other = cluster.running(&whole);
    dead.lose();
    let refused = dead.recreate(&dead.running).is(422);
    assert_eq!(
        refused["detail"]["bottleneck"],
        json!(["n_vcpus"]),
        "{refused}"
    );
    assert_eq!(cluster.now(&dead.running)["state"], "error");
    cluster
        .server
        .cli(&["suspend", "--user", "ann@example.com", "--reason", "unpaid"])
        .unwrap();
    dead.recreate(&dead.running).is(400);
    cluster
        .server
        .cli(&["resume", "--user", "ann@example.com"])
        .unwrap();
    cluster.delete(&other);
    until_true("there is room", || {
        dead.recreate(&dead.running).status == 200
    });
    cluster.api.wait_for("precious", "running").unwrap();
    cluster.away(0, false);
    until_true("the old instances are removed", || {
        cluster.machines(0).is_empty()
    });
    for gone in [&dead.stopped, &dead.vm] {
        cluster.delete(gone);
    }
    dead.cluster.finish();
}

#[test]
fn an_instance_on_its_way_to_a_lost_node_stays() {
    let cluster = Cluster::start(&[("one", ""), ("two", "move_ms = 600000")]);
    cluster
        .server
        .cli(&["user", "allow-moves", "ann@example.com"])
        .unwrap();
    let running = cluster.running(&small("container"));
    cluster.drained("one", "\tmoving");
    cluster.away(1, true);
    wait_until("the node is given up", || {
        Ok(cluster.server.cli(&["node", "lost", "two", "--yes"]).ok())
    });
    cluster.api.wait_for(uuid(&running), "running").unwrap();
    assert!(cluster.machines(0)[uuid(&running)]["life"]["Running"].is_object());
    cluster.away(1, false);
    cluster.finish();
}
