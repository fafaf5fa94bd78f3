//! Section 4.4: update.

use crate::{start, start_with, uuid};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Ports, Server, simulated_node, small};

fn patch(api: &Api, selector: &str, body: Value) -> Answer {
    api.send("PATCH", &format!("/api/instance/{selector}/"), &body)
        .unwrap()
}

#[test]
fn an_empty_patch_changes_nothing() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    let before = api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(
        patch(&api, uuid(&created), json!({})).expect(200).unwrap(),
        before
    );
    server.finish().unwrap();
}

#[test]
fn a_rename_frees_the_old_name() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let old = created["name"].as_str().unwrap();
    let renamed = patch(&api, old, json!({ "name": "new-name" }))
        .expect(200)
        .unwrap();
    assert_eq!(renamed["name"], "new-name");
    assert_eq!(renamed["uuid"], created["uuid"]);
    assert_eq!(api.instance(old).unwrap().status, 404);
    let mut body = small("container");
    body["name"] = json!(old);
    api.create(&body).unwrap().expect(201).unwrap();
    let errors = patch(&api, old, json!({ "name": "new-name" }))
        .expect(400)
        .unwrap();
    assert!(errors["name"].is_array(), "{errors}");
    // An instance may keep its own name.
    patch(&api, "new-name", json!({ "name": "new-name" }))
        .expect(200)
        .unwrap();
    server.finish().unwrap();
}

#[test]
fn a_container_is_resized_live_and_all_or_nothing() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let body = json!({ "n_vcpus": 4, "mem_gib": 8, "disk_size_gib": 20, "name": "bigger" });
    let resized = patch(&api, uuid(&created), body).expect(200).unwrap();
    assert_eq!(resized["state"], "running");
    assert_eq!(resized["n_vcpus"], 4);
    assert_eq!(resized["mem_gib"], 8.0);
    assert_eq!(resized["disk_size_gib"], 20);
    assert_eq!(resized["name"], "bigger");
    let before = api.instance("bigger").unwrap().expect(200).unwrap();
    for wrong in [
        json!({ "name": "other", "n_vcpus": 0 }),
        json!({ "name": "other", "disk_size_gib": 19 }),
        json!({ "name": "A", "n_vcpus": 2 }),
        json!({ "n_vcpus": 2, "state": "running" }),
        json!({ "n_vcpus": "2" }),
    ] {
        let answer = patch(&api, "bigger", wrong.clone());
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    let answer = patch(&api, "bigger", json!({ "name": "other", "n_vcpus": 17 }));
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(answer.body["detail"]["nearest_available"]["n_vcpus"], 16);
    assert_eq!(api.instance("bigger").unwrap().expect(200).unwrap(), before);
    patch(&api, "bigger", json!({ "n_vcpus": 16 }))
        .expect(200)
        .unwrap();
    patch(&api, "bigger", json!({ "n_vcpus": 1, "mem_gib": 1 }))
        .expect(200)
        .unwrap();
    server.finish().unwrap();
}

#[test]
fn all_wrong_fields_are_reported_at_once_even_if_disks_cannot_grow() {
    let (server, api) = start_with("disk_grow = 'no'");
    let taken = api.small_container().unwrap();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let wrong = |body: Value| {
        let errors = patch(&api, uuid(&created), body).expect(400).unwrap();
        let fields: Vec<_> = errors.as_object().unwrap().keys().cloned().collect();
        fields.join(" ")
    };
    let larger = json!({ "disk_size_gib": 20 });
    assert_eq!(wrong(larger), "disk_size_gib");
    let all =
        json!({ "disk_size_gib": 20, "n_vcpus": 0, "name": taken["name"], "state": "running" });
    assert_eq!(wrong(all), "disk_size_gib n_vcpus name state");
    let all = json!({ "disk_size_gib": 20, "mem_gib": "2", "name": "A" });
    assert_eq!(wrong(all), "disk_size_gib mem_gib name");
    let same = json!({ "disk_size_gib": created["disk_size_gib"], "n_vcpus": 2 });
    patch(&api, uuid(&created), same).expect(200).unwrap();
    server.finish().unwrap();
}

#[test]
fn a_stopped_container_accepts_sizes_for_its_next_start() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let resized = patch(&api, uuid(&created), json!({ "n_vcpus": 3 }))
        .expect(200)
        .unwrap();
    assert_eq!(
        (&resized["state"], &resized["n_vcpus"]),
        (&json!("exited"), &json!(3))
    );
    api.act(uuid(&created), "restart")
        .unwrap()
        .expect(200)
        .unwrap();
    let running = api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(running["n_vcpus"], 3);
    server.finish().unwrap();
}

#[test]
fn vms_are_renamed_but_not_resized() {
    let (server, api) = start();
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&vm), "running").unwrap();
    let errors = patch(
        &api,
        uuid(&vm),
        json!({ "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 20 }),
    );
    let errors = errors.expect(400).unwrap();
    for field in ["n_vcpus", "mem_gib", "disk_size_gib"] {
        assert!(errors[field].is_array(), "{errors}");
    }
    patch(&api, uuid(&vm), json!({ "name": "my-vm" }))
        .expect(200)
        .unwrap();
    server.finish().unwrap();
}

/// Creates a stopped container with a disk of 10 GiB.
fn stopped(api: &Api) -> Value {
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let stop = api.act(uuid(&created), "stop").unwrap();
    stop.expect(200).unwrap();
    created
}

#[test]
fn a_running_instance_must_be_stopped_before_its_disk_grows() {
    let (server, api) = start_with("disk_grow = 'stopped'");
    let created = api.small_container().unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    let larger = json!({ "disk_size_gib": 20, "n_vcpus": 2 });
    let errors = patch(&api, id, larger.clone()).expect(400).unwrap();
    let message = errors["disk_size_gib"][0].as_str().unwrap();
    assert!(message.contains("stop it first"), "{errors}");
    let unchanged = api.instance(id).unwrap().expect(200).unwrap();
    assert_eq!(
        (&unchanged["disk_size_gib"], &unchanged["n_vcpus"]),
        (&json!(10), &json!(1))
    );
    patch(&api, id, json!({ "n_vcpus": 2 }))
        .expect(200)
        .unwrap();

    api.act(id, "stop").unwrap().expect(200).unwrap();
    let resized = patch(&api, id, larger).expect(200).unwrap();
    assert_eq!(
        (&resized["state"], &resized["disk_size_gib"]),
        (&json!("exited"), &json!(20))
    );
    let smaller = json!({ "disk_size_gib": 19 });
    assert!(patch(&api, id, smaller).expect(400).unwrap()["disk_size_gib"].is_array());
    let restarted = api.act(id, "restart").unwrap().expect(200).unwrap();
    assert_eq!(restarted["state"], "running");
    let running = api.wait_for(id, "running").unwrap();
    assert_eq!(running["disk_size_gib"], 20);
    // The node has applied the size: a simulated machine uses a tenth of its disk.
    let stats = api
        .get(&format!("/api/instance/{id}/stats/"))
        .unwrap()
        .expect(200)
        .unwrap();
    assert_eq!(stats["disk_used_gib"], 2.0);
    server.finish().unwrap();
}

#[test]
fn a_node_without_live_resize_requires_a_stop() {
    let (server, api) = start_with("fixed_while_running = true");
    let created = api.small_container().unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    let larger = json!({ "n_vcpus": 2, "mem_gib": 2 });
    let errors = patch(&api, id, larger.clone()).expect(400).unwrap();
    for field in ["n_vcpus", "mem_gib"] {
        let message = errors[field][0].as_str().unwrap();
        assert!(message.contains("stop it first"), "{errors}");
    }
    // The disk can still grow.
    patch(&api, id, json!({ "disk_size_gib": 20 }))
        .expect(200)
        .unwrap();
    api.act(id, "stop").unwrap().expect(200).unwrap();
    patch(&api, id, larger).expect(200).unwrap();
    api.act(id, "restart").unwrap().expect(200).unwrap();
    let running = api.wait_for(id, "running").unwrap();
    assert_eq!(running["n_vcpus"], 2);
    server.finish().unwrap();
}

#[test]
fn a_restart_does_not_wait_for_a_slow_disk_growth() {
    let slow = "disk_grow = 'stopped', faults = [{ call = 'grow', every = 1, error = 'retry', after_ms = 100 }]";
    let limits = "[limits]\nanswer_wait_ms = 400\n";
    let settings = format!(
        "{limits}{}{}",
        Ports::take().settings(),
        simulated_node("one", slow)
    );
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = stopped(&api);
    let id = uuid(&created);
    patch(&api, id, json!({ "disk_size_gib": 20 }))
        .expect(200)
        .unwrap();
    let restarted = api.act(id, "restart").unwrap().expect(200).unwrap();
    assert_eq!(restarted["state"], "running");
    let shown = api.instance(id).unwrap().expect(200).unwrap();
    assert_eq!(
        (&shown["state"], &shown["disk_size_gib"]),
        (&json!("running"), &json!(20))
    );
    // Another change must wait; a stop need not.
    assert_eq!(patch(&api, id, json!({ "n_vcpus": 2 })).status, 400);
    let stop = api.act(id, "stop").unwrap().expect(200).unwrap();
    assert_eq!(stop["state"], "shut_off");
    api.delete(id).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}

#[test]
fn content_that_does_not_fit_stays_on_the_old_disk() {
    let faults = "disk_grow = 'stopped', faults = [{ call = 'grow', nth = 1, error = 'full' }]";
    let (server, api) = start_with(faults);
    let created = stopped(&api);
    let id = uuid(&created);
    patch(&api, id, json!({ "disk_size_gib": 20 }))
        .expect(200)
        .unwrap();
    let answer = api.act(id, "restart").unwrap().expect(422).unwrap();
    assert_eq!(answer["detail"]["bottleneck"], json!(["disk_size_gib"]));
    assert_eq!(answer["detail"]["nearest_available"]["disk_size_gib"], 10);
    let shown = api.instance(id).unwrap().expect(200).unwrap();
    assert_eq!(
        (&shown["state"], &shown["disk_size_gib"]),
        (&json!("exited"), &json!(10))
    );
    let restarted = api.act(id, "restart").unwrap().expect(200).unwrap();
    assert_eq!(restarted["state"], "running");
    server.finish().unwrap();
}

#[test]
fn a_failed_disk_growth_is_retried_and_then_abandoned() {
    let every = |call: &str| {
        format!("disk_grow = 'stopped', faults = [{{ call = 'grow', {call}error = 'error' }}]")
    };
    for (faults, status, state) in [
        (every("nth = 1, "), 200, "running"),
        (every(""), 0, "exited"),
    ] {
        let (server, api) = start_with(&faults);
        let created = stopped(&api);
        let id = uuid(&created);
        patch(&api, id, json!({ "disk_size_gib": 20 }))
            .expect(200)
            .unwrap();
        let answer = api.act(id, "restart").unwrap();
        assert!(
            answer.status == status || status == 0 && answer.status >= 400,
            "{answer:?}"
        );
        let shown = api.wait_for(id, state).unwrap();
        assert_eq!(shown["disk_size_gib"], 20);
        server.finish().unwrap();
    }
}
