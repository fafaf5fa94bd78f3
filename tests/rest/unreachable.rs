//! A node that fails at one operation: the answers, and the unaffected rest.

use crate::{Expected, made, running, start_under, uuid, wait_until, with};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Server, until};

/// Starts a server that waits only briefly for its node.
fn brief(faults: &str) -> (Server, Api) {
    let limits = "[limits]\nstats_timeout_ms = 400\nanswer_wait_ms = 400\n";
    start_under(limits, &format!("faults = [{faults}]"))
}

#[test]
fn stats_of_a_node_that_cannot_be_reached_or_is_too_slow_are_502() {
    for fault in ["unreachable", "error", "timeout"] {
        let (_server, api) = brief(&format!("{{ call = \"stats\", error = \"{fault}\" }}"));
        let created = running(&api);
        let begin = Instant::now();
        let path = format!("/api/instance/{}/stats/", uuid(&created));
        let body = api.get(&path).is(502);
        assert!(begin.elapsed() < Duration::from_secs(30), "{fault}");
        assert!(body["detail"].is_string(), "{fault}: {body}");
        // Internal details stay in the log.
        assert!(!body.to_string().contains("simulated"), "{fault}: {body}");
    }
}

#[test]
fn a_failed_resize_leaves_the_old_sizes_and_the_old_name() {
    let (_server, api) = brief("{ call = \"resize\", error = \"timeout\" }");
    let before = running(&api);
    let body = json!({ "n_vcpus": 4, "name": "larger" });
    api.patch(uuid(&before), &body).is(502);
    assert_eq!(api.instance(uuid(&before)).is(200), before);
}

/// A rename arrives while the resize of another request is in progress.
#[test]
fn a_rename_survives_a_concurrent_resize_that_fails() {
    let limits = "[limits]\nanswer_wait_ms = 2000\n";
    let (_server, api) = start_under(
        limits,
        "faults = [{ call = \"resize\", error = \"timeout\" }]",
    );
    let created = api.small_container().unwrap();
    let before = api.wait_for(uuid(&created), "running").unwrap();
    let path = format!("/api/instance/{}/", uuid(&created));
    let resize = {
        let (api, path) = (api.clone(), path.clone());
        let body = json!({ "n_vcpus": 4, "name": "of-the-resize" });
        std::thread::spawn(move || api.send("PATCH", &path, &body))
    };
    // The resize reserves its name as soon as it is in progress.
    let other = with("container", json!({ "name": "of-the-resize" }));
    let mut wrong = other.clone();
    wrong["n_vcpus"] = json!(0);
    wait_until("the resize is in progress", || {
        let refused = api.create(&wrong)?.expect(400)?;
        Ok(refused.get("name").map(|_| ()))
    });
    let renamed = api
        .send("PATCH", &path, &json!({ "name": "by-itself" }))
        .unwrap();
    let renamed = renamed.is(200);
    assert_eq!(renamed["name"], "by-itself");
    assert_eq!(resize.join().unwrap().unwrap().status, 502);
    let after = api.instance(uuid(&created)).is(200);
    assert_eq!(after["name"], "by-itself");
    assert_eq!(after["n_vcpus"], before["n_vcpus"]);
    // The name of the failed resize is free again.
    api.create(&other).is(201);
}

#[test]
fn delete_is_204_at_once_and_frees_resources_after_the_removal() {
    let faults =
        (1..=3).map(|nth| format!("{{ call = \"delete\", nth = {nth}, error = \"unreachable\" }}"));
    let (_server, api) = brief(&faults.collect::<Vec<_>>().join(", "));
    let body = with("container", json!({ "n_vcpus": 16, "name": "all-of-it" }));
    made(&api, &body);
    api.delete("all-of-it").is(204);
    // The name is free immediately; the vCPUs are not.
    let other = with("container", json!({ "name": "all-of-it", "n_vcpus": 1 }));
    let answer = api.create(&other).unwrap();
    assert!(!answer.body.to_string().contains("taken"), "{answer:?}");
    let again = until("the vCPUs are free", || {
        let mut all = body.clone();
        all["name"] = json!("all-again");
        all["n_vcpus"] = json!(15);
        let answer = api.create(&all)?;
        Ok((answer.status == 201).then_some(answer.body))
    });
    api.wait_for(uuid(&again.unwrap()), "running").unwrap();
}

#[test]
fn a_restart_during_the_stop_reuses_the_claim() {
    let faults =
        (1..=2).map(|nth| format!("{{ call = \"stop\", nth = {nth}, error = \"unreachable\" }}"));
    let (_server, api) = brief(&faults.collect::<Vec<_>>().join(", "));
    let body = with("container", json!({ "n_vcpus": 16 }));
    let created = made(&api, &body);
    let stopped = api.act(uuid(&created), "stop").is(200);
    assert_eq!(stopped["state"], "shut_off");
    let restarted = api.act(uuid(&created), "restart").is(200);
    assert_eq!(restarted["state"], "running");
    api.wait_for(uuid(&created), "running").unwrap();
}
