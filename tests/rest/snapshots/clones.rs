//! Instances that are made from snapshots.

use super::{clone, delete, events, holds, one, ready, until_event, until_free};
use crate::{Expected, running, start_with, until_logged, until_used, uuid};
use serde_json::Value;
use wharf_tests::{Api, Server};

/// An instance and a clone of it, which waits until so many requests for it have had no effect. The instance and
/// the snapshot are deleted.
fn without_source(kind: &str, failures: u32) -> (Server, Api, Value, Value) {
    let faults = (2..2 + failures).map(|nth| {
        format!("{{ call = \"ensure\", error = \"retry\", after_ms = 300, nth = {nth} }}")
    });
    let faults = faults.collect::<Vec<_>>().join(", ");
    let (server, api) = start_with(&format!("snapshots = \"{kind}\", faults = [{faults}]"));
    let source = running(&api);
    let taken = ready(&api, &source, "before");
    let created = clone(&api, &taken).is(201);
    delete(&api, &taken).is(204);
    one(&api, &taken).is(404);
    api.delete(uuid(&source)).is(204);
    api.instance(uuid(&source)).is(404);
    (server, api, source, created)
}

#[test]
fn a_clone_is_made_although_its_snapshot_and_its_source_are_deleted() {
    for kind in ["shared", "copied"] {
        let (_server, api, source, created) = without_source(kind, 6);
        let made = api.wait_for(uuid(&created), "running").unwrap();
        assert_eq!(super::count(&api, &source, "failed"), 0);
        until_event(&api, &source, "purged");
        if kind == "copied" {
            holds(&api, 1);
            api.delete(uuid(&made)).is(204);
        }
        until_free(&api);
    }
}

#[test]
fn a_clone_that_is_suspended_before_it_is_made_frees_its_source() {
    for kind in ["shared", "copied"] {
        let (server, api, source, created) = without_source(kind, 58);
        // It runs for no one while it waits.
        until_logged(&server, "request=\"stop\"");
        let kinds = events(&api, &source);
        assert!(!kinds.contains(&"purged".to_owned()), "{kinds:?}");
        let suspend = ["suspend", uuid(&created), "--reason", "x"];
        server.cli(&suspend).unwrap();
        until_event(&api, &source, "purged");
        until_free(&api);
        api.delete(uuid(&created)).is(204);
        until_event(&api, &created, "purged");
    }
}

#[test]
fn a_clone_that_cannot_be_made_frees_its_snapshot() {
    let faults = "faults = [{ call = \"ensure\", error = \"failed\", nth = 2 }]";
    let (_server, api) = start_with(faults);
    let source = running(&api);
    let taken = ready(&api, &source, "before");
    let created = clone(&api, &taken).is(201);
    api.wait_for(uuid(&created), "error").unwrap();
    delete(&api, &taken).is(204);
    until_free(&api);
    api.delete(uuid(&source)).is(204);
    until_event(&api, &source, "purged");
}

#[test]
fn a_snapshot_below_clones_goes_after_the_last_of_them() {
    let (server, api) = start_with("snapshots = \"copied\"");
    let source = running(&api);
    let taken = ready(&api, &source, "before");
    let clones = [clone(&api, &taken).is(201), clone(&api, &taken).is(201)];
    for created in &clones {
        api.wait_for(uuid(created), "running").unwrap();
    }
    delete(&api, &taken).is(204);
    one(&api, &taken).is(404);
    holds(&api, 1);
    // Other snapshots do not wait for it, and nothing is busy with it.
    let again = ready(&api, &source, "again");
    delete(&api, &again).is(204);
    until_used(&api, "n_snapshots", 1);
    let asked = || server.log().matches("request=\"drop-snapshot\"").count();
    let before = asked();
    api.delete(uuid(&clones[0])).is(204);
    until_event(&api, &clones[0], "purged");
    holds(&api, 1);
    // The engine has said that it is in use; it is not asked again and again.
    assert!(asked() <= before + 1, "{} after {before}", asked());
    api.delete(uuid(&clones[1])).is(204);
    until_used(&api, "n_snapshots", 0);
}
