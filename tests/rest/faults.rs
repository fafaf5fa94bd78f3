//! Failures of an engine that the simulated engine's script causes: in creations and changes of ports.

use crate::{Expected, made, start_under, start_with, uuid, with};
use serde_json::json;
use wharf_tests::{small, until};

#[test]
fn a_failed_creation_frees_its_compute_and_costs_nothing() {
    let (server, api) = start_with("faults = [{ call = \"ensure\", nth = 1, error = \"failed\" }]");
    let body = with("container", json!({ "n_vcpus": 16 }));
    let created = api.create(&body).is(201);
    api.wait_for(uuid(&created), "error").unwrap();
    let bill = || server.cli(&["bill", "ann@example.com"]).unwrap();
    let before = bill();
    let another = server.user("bob@example.com").unwrap();
    let next = until("the compute of the failed instance is free", || {
        let answer = another.create(&body)?;
        Ok((answer.status == 201).then_some(answer.body))
    });
    another.wait_for(uuid(&next.unwrap()), "running").unwrap();
    crate::history::until_billed(&server, "bob@example.com");
    assert_eq!(bill(), before);
    api.delete(uuid(&created)).is(204);
}

#[test]
fn provisioning_fails_at_its_deadline() {
    let slow = "ready_after_ms = 600000";
    let (_server, api) = start_under("provisioning_deadline_s = 1\n", slow);
    let created = api.small_container().unwrap();
    assert_eq!(created["state"], "provisioning");
    api.wait_for(uuid(&created), "error").unwrap();
}

#[test]
fn a_failed_port_change_is_retried() {
    let faults = "faults = [{ call = \"ports\", nth = 1, error = \"unreachable\" }, \
                  { call = \"ports\", nth = 3, error = \"lost\" }]";
    let (server, api) = start_with(faults);
    let vm = made(&api, &small("vm"));
    let path = format!("/api/instance/{}/add-port/", uuid(&vm));
    let open = api.send("POST", &path, &json!({ "port": 8080 })).is(200);
    assert_eq!(open["wan_ports"], json!([22, 8080]));
    let log = server.log();
    let calls = log.matches("/ports").count();
    assert!(calls >= 4, "{calls} calls:\n{log}");
}
