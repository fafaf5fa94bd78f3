//! Resizes on nodes that cannot grow or change everything while an instance runs.

use crate::snapshots::stopped;
use crate::{Expected, has, running, start_under, start_with, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::Shell;

#[test]
fn all_wrong_fields_are_reported_at_once_even_if_disks_cannot_grow() {
    let (_server, api) = start_with("disk_grow = 'no'");
    let taken = api.small_container().unwrap();
    let created = running(&api);
    let wrong = |body: Value| {
        let errors = api.patch(uuid(&created), &body).is(400);
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
    api.patch(uuid(&created), &same).is(200);
}

#[test]
fn a_running_instance_must_be_stopped_before_its_disk_grows() {
    let (_server, api) = start_with("disk_grow = 'stopped'");
    let created = running(&api);
    let id = uuid(&created);
    let larger = json!({ "disk_size_gib": 20, "n_vcpus": 2 });
    let errors = api.patch(id, &larger).is(400);
    let message = errors["disk_size_gib"][0].as_str().unwrap();
    assert!(message.contains("stop it first"), "{errors}");
    let unchanged = api.instance(id).is(200);
    assert_eq!(unchanged["disk_size_gib"], 10);
    assert_eq!(unchanged["n_vcpus"], 1);
    api.patch(id, &json!({ "n_vcpus": 2 })).is(200);

    api.act(id, "stop").is(200);
    let resized = api.patch(id, &larger).is(200);
    assert_eq!(resized["state"], "exited");
    assert_eq!(resized["disk_size_gib"], 20);
    let smaller = json!({ "disk_size_gib": 19 });
    assert!(api.patch(id, &smaller).is(400)["disk_size_gib"].is_array());
    let restarted = api.act(id, "restart").is(200);
    assert_eq!(restarted["state"], "running");
    let running = api.wait_for(id, "running").unwrap();
    assert_eq!(running["disk_size_gib"], 20);
    // The node has applied the size: a simulated machine uses a tenth of its disk.
    let stats = api.get(&format!("/api/instance/{id}/stats/")).is(200);
    assert_eq!(stats["disk_used_gib"], 2.0);
}

#[test]
fn a_node_without_live_resize_requires_a_stop() {
    let (_server, api) = start_with("fixed_while_running = true");
    let created = running(&api);
    let id = uuid(&created);
    let larger = json!({ "n_vcpus": 2, "mem_gib": 2 });
    let errors = api.patch(id, &larger).is(400);
    for field in ["n_vcpus", "mem_gib"] {
        let message = errors[field][0].as_str().unwrap();
        assert!(message.contains("stop it first"), "{errors}");
    }
    // The disk can still grow.
    api.patch(id, &json!({ "disk_size_gib": 20 })).is(200);
    api.act(id, "stop").is(200);
    api.patch(id, &larger).is(200);
    api.act(id, "restart").is(200);
    let running = api.wait_for(id, "running").unwrap();
    assert_eq!(running["n_vcpus"], 2);
}

#[test]
fn a_restart_does_not_wait_for_a_slow_disk_growth() {
    let slow = "disk_grow = 'stopped', faults = [{ call = 'grow', every = 1, error = 'retry', after_ms = 100 }]";
    let limits = "[limits]\nanswer_wait_ms = 400\n";
    let (_server, api) = start_under(limits, slow);
    let created = stopped(&api);
    let id = uuid(&created);
    api.patch(id, &json!({ "disk_size_gib": 20 })).is(200);
    let restarted = api.act(id, "restart").is(200);
    assert_eq!(restarted["state"], "running");
    let message = restarted["message"].as_str().unwrap();
    assert!(message.contains("moves to its larger disk"), "{message}");
    let shown = api.instance(id).is(200);
    assert_eq!(shown["state"], "running");
    assert_eq!(shown["disk_size_gib"], 20);
    // Another change must wait; a stop need not.
    assert_eq!(api.patch(id, &json!({ "n_vcpus": 2 })).unwrap().status, 400);
    let stop = api.act(id, "stop").is(200);
    assert_eq!(stop["state"], "shut_off");
    api.delete(id).is(204);
}

#[test]
fn a_move_to_a_larger_disk_is_told_everywhere() {
    let slow = "disk_grow = 'stopped', faults = [{ call = 'grow', nth = 1, error = 'partly', after_ms = 4000 }]";
    let (server, api) = start_under("", slow);
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let created = stopped(&api);
    let id = uuid(&created);
    let name = created["name"].as_str().unwrap();
    api.patch(id, &json!({ "disk_size_gib": 20 })).is(200);
    let restart = std::thread::scope(|scope| {
        let restart = scope.spawn(|| api.act(id, "restart").is(200));
        let event = || {
            let path = format!("/api/event/?instance={id}");
            let events = api.get(&path)?.expect(200)?;
            let last = events.as_array().and_then(|all| all.last().cloned());
            Ok(last.filter(|event| event["type"] == "disk-growing"))
        };
        let told = wait_until("an event tells of the move", event);
        assert_eq!(told["state"], "running");
        has(&told["message"], "moves to its larger disk, 3.5 GiB so far");
        assert_eq!(api.instance(id).is(200)["state"], "running");
        let refused = api.get(&format!("/api/instance/{id}/stats/")).is(400);
        has(&refused, "work on its disk");
        let waited = shell.run(&["wait", name]).unwrap();
        assert!(waited.stderr.contains("larger disk"), "{}", waited.stderr);
        let events = api.get(&format!("/api/event/?instance={id}")).is(200);
        assert_eq!(events.as_array().unwrap().last().unwrap()["type"], "ready");
        restart.join().unwrap()
    });
    assert_eq!(restart["state"], "running");
    api.get(&format!("/api/instance/{id}/stats/")).is(200);
}

#[test]
fn content_that_does_not_fit_stays_on_the_old_disk() {
    let faults = "disk_grow = 'stopped', faults = [{ call = 'grow', nth = 1, error = 'full' }]";
    let (_server, api) = start_with(faults);
    let created = stopped(&api);
    let id = uuid(&created);
    api.patch(id, &json!({ "disk_size_gib": 20 })).is(200);
    let answer = api.act(id, "restart").is(422);
    assert_eq!(answer["detail"]["bottleneck"], json!(["disk_size_gib"]));
    assert_eq!(answer["detail"]["nearest_available"]["disk_size_gib"], 10);
    let shown = api.instance(id).is(200);
    assert_eq!(shown["state"], "exited");
    assert_eq!(shown["disk_size_gib"], 10);
    let restarted = api.act(id, "restart").is(200);
    assert_eq!(restarted["state"], "running");
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
        let (_server, api) = start_with(&faults);
        let created = stopped(&api);
        let id = uuid(&created);
        api.patch(id, &json!({ "disk_size_gib": 20 })).is(200);
        let answer = api.act(id, "restart").unwrap();
        assert!(
            answer.status == status || status == 0 && answer.status >= 400,
            "{answer:?}"
        );
        let shown = api.wait_for(id, state).unwrap();
        assert_eq!(shown["disk_size_gib"], 20);
    }
}
