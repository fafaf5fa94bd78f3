//! Nodes that leave the configuration, and instances that will never come back.

use crate::{Expected, edit, running, start_on, uuid, wait_until, with};
use serde_json::json;
use wharf_tests::{Api, Server, lasting_node, simulated_node};

const BRIEF: &str = "[limits]\nobserve_every_ms = 100\n";

fn start() -> (Server, Api, String) {
    let (node, dir) = lasting_node("old", "").unwrap();
    let (server, api) = start_on("", &format!("{BRIEF}{node}"));
    (server.keeping(dir), api, node)
}

/// The first columns of a node in `wharf node list`.
fn cells(list: &str, node: &str) -> Vec<String> {
    let line = list.lines().find(|line| line.starts_with(node)).unwrap();
    let cells = line.split_whitespace().take(4);
    cells.map(str::to_owned).collect()
}

#[test]
fn a_start_without_a_node_that_has_instances_is_refused_with_the_list() {
    let (mut server, mut api, node) = start();
    let kept = running(&api);
    server.terminate().unwrap();
    edit(&server, &node, &simulated_node("new", ""));
    let refused = server.run().unwrap_err().to_string();
    for words in [uuid(&kept), "on node old", "retired = true", "wharf forget"] {
        assert!(refused.contains(words), "{refused}");
    }
    let list = server.cli(&["node", "list"]).unwrap();
    assert_eq!(cells(&list, "old"), ["old", "-", "-", "1"], "{list}");
    // Without its node, and without a server, the instance can be forgotten.
    server.cli(&["forget", uuid(&kept)]).unwrap();
    server.run().unwrap();
    api = server.again(&api);
    assert_eq!(api.instance(uuid(&kept)).unwrap().status, 404);
    let events = server.cli(&["events", uuid(&kept)]).unwrap();
    assert!(events.contains("forgotten"), "{events}");
    running(&api);
}

#[test]
fn a_retired_node_takes_no_new_instances_and_keeps_the_others() {
    let (mut server, mut api, node) = start();
    let kept = running(&api);
    server.terminate().unwrap();
    let retired = node.replace("driver =", "retired = true\ndriver =");
    let both = format!("{retired}{}", simulated_node("new", ""));
    edit(&server, &node, &both);
    server.run().unwrap();
    api = server.again(&api);
    let mut ports = vec![kept["wan_ssh_port"].clone()];
    for _ in 0..8 {
        let created = running(&api);
        assert!(!ports.contains(&created["wan_ssh_port"]));
        ports.push(created["wan_ssh_port"].clone());
    }
    let list = server.cli(&["node", "list"]).unwrap();
    for (node, instances) in [("old", "1"), ("new", "8")] {
        let cells = cells(&list, node);
        assert_eq!((&*cells[1], &*cells[3]), ("simulated", instances), "{list}");
        assert!(cells[2].starts_with("20"), "{list}");
    }
    assert!(list.contains("retired, reachable"), "{list}");
    assert_eq!(api.instance(uuid(&kept)).is(200)["state"], "running");
    api.delete(uuid(&kept)).is(204);
    wait_until("the retired node is empty", || {
        let list = server.cli(&["node", "list"])?;
        Ok((cells(&list, "old")[3] == "0").then_some(()))
    });
}

#[test]
fn an_instance_is_forgotten_only_if_its_node_cannot_delete_it_or_by_force() {
    let (mut server, api, _) = start();
    let instance = running(&api);
    let all = with("container", json!({ "n_vcpus": 16 }));
    let refused = server.cli(&["forget", uuid(&instance)]).unwrap_err();
    assert!(refused.to_string().contains("is in reach"), "{refused}");
    api.create(&all).is(422);
    server.cli(&["forget", uuid(&instance), "--force"]).unwrap();
    assert_eq!(api.instance(uuid(&instance)).unwrap().status, 404);
    let created = api.create(&all).is(201);
    let bill = || server.cli(&["bill", "ann@example.com"]).unwrap();
    let line = |bill: String| {
        let mut lines = bill.lines().map(str::to_owned);
        lines.find(|line| line.contains(uuid(&instance)))
    };
    let before = line(bill());
    // The engine may not have removed the forgotten object yet, and refuse the new one.
    wait_until("the new instance is billed", || {
        let line = |bill: String| bill.lines().find(|l| l.contains(uuid(&created))).map(drop);
        Ok(line(server.cli(&["bill", "ann@example.com"])?))
    });
    assert_eq!(line(bill()), before, "its ledger is closed");
    server.terminate().unwrap();
    let refused = server.cli(&["forget", uuid(&created)]).unwrap_err();
    assert!(refused.to_string().contains("--force"), "{refused}");
    server.run().unwrap();
}
