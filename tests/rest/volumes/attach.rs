//! Volumes of instances that exist.

use super::{
    ANN, create, delete, delete_at_last, events, id, one, ready, running_with, until_state,
    with_volumes,
};
use crate::moves::machines;
use crate::outage::Node;
use crate::{
    Expected, edit, has, made, running, start, start_on, start_under, start_with, until_logged,
    until_true, until_used, uuid, wait_until,
};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, lasting_node, simulated_node};

/// The setting of an engine that attaches volumes to existing instances.
const LATE: &str = "late_attach = true";

fn attach(api: &Api, instance: &Value, volume: &str, path: &str, read_only: bool) -> Answer {
    let body = json!({ "volume": volume, "path": path, "read_only": read_only });
    let action = format!("/api/instance/{}/attach-volume/", uuid(instance));
    api.send("POST", &action, &body).unwrap()
}

fn detach(api: &Api, instance: &Value, volume: &str) -> Answer {
    let action = format!("/api/instance/{}/detach-volume/", uuid(instance));
    api.send("POST", &action, &json!({ "volume": volume }))
        .unwrap()
}

#[test]
fn a_volume_is_attached_at_one_path_and_is_free_once_it_is_detached() {
    let (_server, api) = start_with(LATE);
    let data = ready(&api, "data", 1);
    let instance = running(&api);
    let said = message(attach(&api, &instance, "data", "/data", false));
    assert_eq!(said, "Volume data is attached at /data.");
    let refused = attach(&api, &instance, "data", "/other", false).is(400);
    has(&refused["volume"][0], "/data");
    attach(&api, &instance, "data", "/data", true).is(400);
    let said = message(detach(&api, &instance, "data"));
    assert_eq!(said, "Volume data is detached.");
    let refused = detach(&api, &instance, "none").is(400);
    has(&refused["volume"][0], "no such volume");
    let kinds = events(&api, id(&data));
    let expected =
        ["created", "ready", "attached", "detached"].map(|kind| format!("volume-{kind}"));
    assert_eq!(kinds, expected);
    running_with(&api, "data", false);
}

#[test]
fn a_stopped_instance_gets_and_loses_volumes() {
    let (server, api) = start_with(LATE);
    ready(&api, "data", 1);
    let instance = running(&api);
    api.act(uuid(&instance), "stop").is(200);
    attach(&api, &instance, "data", "/data", false).is(200);
    let now = api.instance(uuid(&instance)).is(200);
    assert_eq!(now["state"], "exited");
    assert_eq!(now["volumes"][0]["name"], "data");
    api.act(uuid(&instance), "restart").is(200);
    api.act(uuid(&instance), "stop").is(200);
    detach(&api, &instance, "data").is(200);
    delete(&api, "data").is(204);
    let events = server.cli(&["events", uuid(&instance)]).unwrap();
    assert_eq!(events.matches("compute-released").count(), 2, "{events}");
}

#[test]
fn engines_without_late_attachment_say_so() {
    let (_server, api) = start();
    ready(&api, "data", 1);
    let instance = running(&api);
    let refused = attach(&api, &instance, "data", "/data", false).is(400);
    has(&refused["detail"], "at creation only");
    let with = running_with(&api, "data", false);
    let refused = detach(&api, &with, "data").is(400);
    has(&refused["detail"], "at creation only");
    assert_eq!(
        api.instance(uuid(&with)).is(200)["volumes"][0]["name"],
        "data"
    );
}

#[test]
fn attachments_that_cannot_be_are_refused() {
    let nodes = [simulated_node("one", ""), simulated_node("two", "")].concat();
    let (_server, api) = start_on("", &nodes);
    ready(&api, "first", 100);
    ready(&api, "second", 100);
    let instance = running_with(&api, "first", false);
    for (volume, path, field, why) in [
        ("second", "/second", "volume", "another host"),
        ("none", "/x", "volume", "no volume"),
        ("second", "/etc/x", "path", "system"),
    ] {
        let refused = attach(&api, &instance, volume, path, false).is(400);
        has(&refused[field][0], why);
    }
    let vm = made(&api, &wharf_tests::small("vm"));
    let refused = attach(&api, &vm, "first", "/x", true).is(400);
    has(&refused["detail"], "VM");
}

#[test]
fn a_detachment_by_name_prefers_the_own_volume() {
    let (server, ann) = start_with(LATE);
    let (bob, carol) = (
        server.user("bob@example.com").unwrap(),
        server.user("carol@example.com").unwrap(),
    );
    let instance = running(&bob);
    let share = json!({ "user": "bob@example.com" });
    for (owner, email) in [(&ann, "ann@example.com"), (&carol, "carol@example.com")] {
        ready(owner, "data", 1);
        owner
            .send("POST", "/api/volume/data/share/", &share)
            .is(201);
        let (named, path) = (
            format!("{email}/data"),
            format!("/of/{email}").replace('@', "_"),
        );
        attach(&bob, &instance, &named, &path, true).is(200);
    }
    // Its ids are random, so that the order of the volumes proves nothing in one try.
    for _ in 0..4 {
        ready(&bob, "data", 1);
        attach(&bob, &instance, "data", "/own", false).is(200);
        let left = detach(&bob, &instance, "data").is(200);
        assert_eq!(left["volumes"].as_array().unwrap().len(), 2);
        has(&left["volumes"][0]["path"], "/of/ann_");
        delete_at_last(&bob, "data");
    }
    let refused = detach(&bob, &instance, "data").is(400);
    has(&refused["volume"][0], "give the UUID");
    let left = detach(&bob, &instance, "carol@example.com/data").is(200);
    has(&left["volumes"], "/of/ann_");
    // One volume of the name is left.
    let left = detach(&bob, &instance, "data").is(200);
    assert_eq!(left["volumes"], json!([]));
}

#[test]
fn the_engine_may_refuse_a_change_of_volumes() {
    let faults =
        "late_attach = true, faults = [{ call = \"set_volumes\", error = \"error\", nth = 1 }]";
    let (_server, api) = start_with(faults);
    ready(&api, "data", 1);
    let instance = running(&api);
    let refused = attach(&api, &instance, "data", "/data", false).is(400);
    has(&refused["detail"], "could not attach");
    assert_eq!(one(&api, "data").is(200)["attached_to"], json!([]));
    attach(&api, &instance, "data", "/data", false).is(200);
    create(&api, "more", 1).is(201);
    api.delete(uuid(&instance)).is(204);
    delete_at_last(&api, "data");
}

/// The settings of an engine that never takes a change of volumes.
const NEVER: &str =
    "late_attach = true, faults = [{ call = \"set_volumes\", error = \"retry\", after_ms = 100 }]";

const BRIEF: &str = "[limits]\nobserve_every_ms = 100\nanswer_wait_ms = 300\n";

fn message(answer: Answer) -> String {
    answer.is(200)["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_change_that_the_host_has_not_confirmed_is_not_called_done() {
    let (_server, api) = start_under(BRIEF, NEVER);
    ready(&api, "data", 1);
    ready(&api, "more", 1);
    let (with, without) = (running_with(&api, "data", false), running(&api));
    for _ in 0..2 {
        let said = message(attach(&api, &without, "more", "/more", false));
        let expected = "Volume more is being attached at /more; its host has not confirmed it yet.";
        assert_eq!(said, expected);
        let said = message(detach(&api, &with, "data"));
        let expected = "Volume data is being detached; its host has not confirmed it yet.";
        assert_eq!(said, expected);
    }
    delete(&api, "data").is(400);
}

#[test]
fn a_change_of_volumes_does_not_hold_up_a_stop() {
    let (server, api) = start_under(BRIEF, NEVER);
    ready(&api, "data", 1);
    let instance = running(&api);
    attach(&api, &instance, "data", "/data", false).is(200);
    let stopped = api.act(uuid(&instance), "stop").is(200);
    let said = stopped["message"].as_str().unwrap();
    assert!(!said.contains("confirmed"), "{said}");
    until_used(&api, "n_vcpus", 0);
    let events = server.cli(&["events", uuid(&instance)]).unwrap();
    assert_eq!(events.matches("compute-released").count(), 1, "{events}");
    // The right to the volume is not free, since the engine has not said that the instance is without it.
    delete(&api, "data").is(400);
    api.delete(uuid(&instance)).is(204);
    delete_at_last(&api, "data");
}

#[test]
fn a_stopped_instance_gets_its_volumes_after_its_stop() {
    let faults = "late_attach = true, faults = [{ call = \"set_volumes\", error = \"retry\", after_ms = 1500, nth = 1 }]";
    let (server, api) = start_under(BRIEF, faults);
    ready(&api, "data", 1);
    let instance = running(&api);
    attach(&api, &instance, "data", "/data", false).is(200);
    api.act(uuid(&instance), "stop").is(200);
    wait_until("the volume is attached", || {
        let said = message(attach(&api, &instance, "data", "/data", false));
        Ok((said == "Volume data is attached at /data.").then_some(()))
    });
    let events = server.cli(&["events", uuid(&instance)]).unwrap();
    assert_eq!(events.matches("compute-released").count(), 1, "{events}");
    api.act(uuid(&instance), "restart").is(200);
}

#[test]
fn a_change_of_volumes_ends_with_an_instance_that_an_accepted_engine_has_not() {
    let node = Node::start_on(BRIEF, &format!("{LATE}, "));
    ready(&node.api, "data", 1);
    let instance = node.running(1);
    node.on("other-store");
    node.listed("outage: ");
    let said = message(attach(&node.api, &instance, "data", "/data", false));
    has(&said, "is being attached");
    node.server.cli(&["node", "accept", "one"]).unwrap();
    node.api.wait_for(uuid(&instance), "exited").unwrap();
    wait_until("the change is refused", || {
        let attached_to = &one(&node.api, "data").is(200)["attached_to"];
        Ok((*attached_to == json!([])).then_some(()))
    });
}

#[test]
fn a_change_of_volumes_stops_no_instance_that_has_lost_one() {
    let dir = tempfile::tempdir().unwrap();
    let lost = dir.path().join("lost");
    let settings = format!("{LATE}, lose_volumes_while = \"{}\"", lost.display());
    let (server, api) = start_under("[limits]\nobserve_every_ms = 100\n", &settings);
    for name in ["data", "more", "other"] {
        ready(&api, name, 1);
    }
    // An instance that runs on shows that the node has its own store.
    let body = with_volumes(json!([
        { "volume": "data", "path": "/data" }, { "volume": "more", "path": "/more" },
    ]));
    let instance = made(&api, &body);
    std::fs::write(&lost, "").unwrap();
    until_state(&api, "data", "error");
    let said = message(detach(&api, &instance, "more"));
    assert_eq!(said, "Volume more is detached.");
    std::fs::remove_file(&lost).unwrap();
    until_state(&api, "other", "ready");
    std::fs::write(&lost, "").unwrap();
    until_state(&api, "data", "error");
    attach(&api, &instance, "other", "/other", false);
    wharf_tests::observed(&api, "one", 5).unwrap();
    assert_eq!(api.instance(uuid(&instance)).is(200)["state"], "running");
    let events = server.cli(&["events", uuid(&instance)]).unwrap();
    assert!(!events.contains("restart-failed"), "{events}");
}

#[test]
fn volumes_are_attached_and_detached_after_a_kill() {
    // The engine has the changes and its answers were lost, or it has none of them.
    for (error, has_them) in [("lost", true), ("unreachable", false)] {
        let faults = format!("faults = [{{ call = \"set_volumes\", error = \"{error}\" }}]");
        let (node, dir) = lasting_node("one", &format!("{LATE}, {faults}")).unwrap();
        let (mut server, api) = start_on(BRIEF, &node);
        let (data, more) = (ready(&api, "data", 1), ready(&api, "more", 1));
        let (taker, giver) = (running(&api), running_with(&api, "more", false));
        let said = message(attach(&api, &taker, "data", "/data", false));
        has(&said, "is being attached");
        has(message(detach(&api, &giver, "more")), "is being detached");
        let has_failed = |instance: &Value| {
            let path = format!("/instances/{}/volumes", uuid(instance));
            let log = server.written();
            log.lines()
                .any(|line| line.contains("engine request failed") && line.contains(&path))
        };
        until_true("the engine was asked for both changes", || {
            has_failed(&taker) && has_failed(&giver)
        });
        server.kill().unwrap();
        let has_volume = |instance: &Value| {
            let engine = machines(&dir.path().join("engine"));
            engine[uuid(instance)]["wanted"]["mounts"] != json!([])
        };
        assert_eq!(
            (has_volume(&taker), has_volume(&giver)),
            (has_them, !has_them)
        );

        edit(&server, &faults, "faults = []");
        server.run().unwrap();
        let api = server.again(&api);
        wait_until("both changes are done", || {
            let attached = message(attach(&api, &taker, "data", "/data", false));
            let detached = message(detach(&api, &giver, "more"));
            let is_done = attached == "Volume data is attached at /data."
                && detached == "Volume more is detached.";
            Ok(is_done.then_some(()))
        });
        assert_eq!((has_volume(&taker), has_volume(&giver)), (true, false));
        let kinds = |kinds: &[&str]| -> Vec<_> {
            let kinds = kinds.iter();
            kinds.map(|kind| format!("volume-{kind}")).collect()
        };
        let attached = ["created", "ready", "attached"];
        assert_eq!(events(&api, id(&data)), kinds(&attached));
        let detached = [&attached[..], &["detached"]].concat();
        assert_eq!(events(&api, id(&more)), kinds(&detached));
        delete(&api, "more").is(204);
    }
}

#[test]
fn a_suspension_of_the_owner_leaves_a_volume_to_be_made_and_attached() {
    let node = Node::start_on(BRIEF, &format!("{LATE}, volume_ms = 2000, "));
    let (server, api) = (&node.server, &node.api);
    let suspend = ["suspend", "--user", ANN, "--reason", "unpaid"];
    let resume = ["resume", "--user", ANN];
    create(api, "data", 1).is(201);
    until_logged(server, "/volumes/");
    // Wharf does not see the end of what the engine has begun.
    node.on("unreachable");
    server.cli(&suspend).unwrap();
    assert_eq!(one(api, "data").is(200)["state"], "creating");
    node.off("unreachable");
    until_state(api, "data", "ready");
    server.cli(&resume).unwrap();

    let instance = running(api);
    node.on("unreachable");
    node.listed("out of reach");
    let said = message(attach(api, &instance, "data", "/data", false));
    has(&said, "is being attached");
    server.cli(&suspend).unwrap();
    node.off("unreachable");
    wait_until("the volume is attached", || {
        let said = message(attach(api, &instance, "data", "/data", false));
        Ok((said == "Volume data is attached at /data.").then_some(()))
    });
    until_used(api, "n_vcpus", 0);
    let refused = api.act(uuid(&instance), "restart").is(400);
    has(&refused["detail"], "unpaid");
    server.cli(&resume).unwrap();
    api.act(uuid(&instance), "restart").is(200);
    let now = api.wait_for(uuid(&instance), "running").unwrap();
    assert_eq!(now["volumes"][0]["name"], "data");
}
