//! Wharf killed and restarted, on the simulated engine.

use crate::{Expected, running, start_lasting, uuid};
use serde_json::Value;
use wharf_tests::until;

#[test]
fn acknowledged_changes_survive_kill_9() {
    let (mut server, mut api, _dir) = start_lasting("ready_after_ms = 200");
    let mut made: Vec<Value> = Vec::new();
    for n in 0..6 {
        made.push(api.small_container().unwrap());
        if n % 3 == 2 {
            let oldest = made.remove(0);
            api.delete(uuid(&oldest)).is(204);
        }
        server.kill().unwrap();
        server.run().unwrap();
        api = server.again(&api);
        let listed: Vec<_> = api
            .list()
            .unwrap()
            .iter()
            .map(|i| i["uuid"].clone())
            .collect();
        let expected: Vec<_> = made.iter().map(|i| i["uuid"].clone()).collect();
        assert_eq!(listed, expected);
    }
    for instance in &made {
        let running = api.wait_for(uuid(instance), "running").unwrap();
        for field in [
            "name",
            "lan_ipv4",
            "wan_ssh_port",
            "original_service_password",
            "created_at",
        ] {
            assert_eq!(running[field], instance[field], "{field}");
        }
    }
    server.finish().unwrap();
}

#[test]
fn the_next_start_carries_out_pending_intents() {
    let (mut server, mut api, _dir) = start_lasting("ready_after_ms = 50");
    let created = running(&api);
    for (action, state) in [
        ("stop", "exited"),
        ("restart", "running"),
        ("stop", "exited"),
    ] {
        api.act(uuid(&created), action).is(200);
        server.kill().unwrap();
        server.run().unwrap();
        api = server.again(&api);
        api.wait_for(uuid(&created), state).unwrap();
    }
    api.delete(uuid(&created)).is(204);
    server.kill().unwrap();
    server.run().unwrap();
    api = server.again(&api);
    assert_eq!(api.instance(uuid(&created)).unwrap().status, 404);
    // The whole node is free again once the engine reports the removal.
    let mut all = wharf_tests::small("container");
    all["n_vcpus"] = serde_json::json!(16);
    until("the node is empty", || {
        Ok((api.create(&all)?.status == 201).then_some(()))
    })
    .unwrap();
    server.finish().unwrap();
}
