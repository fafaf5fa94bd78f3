//! Section 4.6: restart.

use crate::{start, start_with, uuid};
use serde_json::json;
use wharf_tests::small;

#[test]
fn a_stopped_instance_runs_again_with_its_addresses() {
    let (server, api) = start();
    for kind in ["container", "vm"] {
        let created = api.create(&small(kind)).unwrap().expect(201).unwrap();
        let before = api.wait_for(uuid(&created), "running").unwrap();
        api.act(uuid(&created), "stop")
            .unwrap()
            .expect(200)
            .unwrap();
        let restarted = api
            .act(uuid(&created), "restart")
            .unwrap()
            .expect(200)
            .unwrap();
        assert_eq!(restarted["state"], "running");
        assert_eq!(restarted["uuid"], created["uuid"]);
        assert!(restarted["message"].is_string());
        let after = api.instance(uuid(&created)).unwrap().expect(200).unwrap();
        assert_eq!(before, after);
    }
    server.finish().unwrap();
}

#[test]
fn only_a_stopped_instance_can_be_restarted() {
    let (server, api) = start_with("ready_after_ms = 700");
    let created = api.small_container().unwrap();
    for state in ["provisioning", "running"] {
        api.wait_for(uuid(&created), state).unwrap();
        let answer = api.act(uuid(&created), "restart").unwrap();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(
            answer.body["detail"].as_str().unwrap().contains(state),
            "{answer:?}"
        );
    }
    server.finish().unwrap();
}

#[test]
fn a_full_node_is_422_and_nothing_changes() {
    let (server, api) = start();
    let mut body = small("container");
    body["n_vcpus"] = json!(10);
    let first = api.create(&body).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&first), "running").unwrap();
    api.act(uuid(&first), "stop").unwrap().expect(200).unwrap();
    let second = api.create(&body).unwrap().expect(201).unwrap();
    let answer = api
        .act(uuid(&first), "restart")
        .unwrap()
        .expect(422)
        .unwrap();
    assert_eq!(answer["detail"]["bottleneck"], json!(["n_vcpus"]));
    assert_eq!(answer["detail"]["requested"], json!({ "n_vcpus": 10 }));
    assert_eq!(
        answer["detail"]["nearest_available"],
        json!({ "n_vcpus": 6 })
    );
    assert_eq!(
        api.instance(uuid(&first)).unwrap().expect(200).unwrap()["state"],
        "exited"
    );
    api.wait_for(uuid(&second), "running").unwrap();
    api.act(uuid(&second), "stop").unwrap().expect(200).unwrap();
    api.act(uuid(&first), "restart")
        .unwrap()
        .expect(200)
        .unwrap();
    server.finish().unwrap();
}

#[test]
fn a_failed_start_is_502_and_the_instance_stays_stopped() {
    let node =
        wharf_tests::simulated_node("one", "faults = [{ call = \"start\", error = \"error\" }]");
    let ports = wharf_tests::Ports::take().settings();
    let settings = format!("provisioning_deadline_s = 2\n{ports}{node}");
    let server = wharf_tests::Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let answer = api.act(uuid(&created), "restart").unwrap();
    assert_eq!(answer.status, 502, "{answer:?}");
    assert_eq!(
        api.instance(uuid(&created)).unwrap().expect(200).unwrap()["state"],
        "exited"
    );
    // The node never took the start, so that only the audit log has it.
    let events = server.cli(&["events", uuid(&created)]).unwrap();
    assert!(!events.contains("restart"), "{events}");
    let audit = server.cli(&["audit"]).unwrap();
    assert!(
        audit.contains("refused: the node did not take the start"),
        "{audit}"
    );
    server.finish().unwrap();
}
