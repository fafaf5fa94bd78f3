//! Snapshots of instances, restores from them, clones of them, and plans that take them.

mod bill;
mod clones;
mod failures;
mod life;
pub mod plans;
mod restores;

use crate::{Expected, until_true, used, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api};

/// Requests a snapshot of an instance.
fn take(api: &Api, instance: &Value, name: &str) -> Answer {
    let path = format!("/api/instance/{}/snapshot/", uuid(instance));
    api.send("POST", &path, &json!({ "name": name })).unwrap()
}

/// Takes a snapshot, and waits until it is ready.
pub fn ready(api: &Api, instance: &Value, name: &str) -> Value {
    until_state(api, &take(api, instance, name).is(201), "ready")
}

fn path(snapshot: &Value) -> String {
    format!("/api/snapshot/{}/", snapshot["id"].as_str().unwrap())
}

fn one(api: &Api, snapshot: &Value) -> Answer {
    api.get(&path(snapshot)).unwrap()
}

fn until_state(api: &Api, snapshot: &Value, state: &str) -> Value {
    wait_until(&format!("the snapshot is {state}"), || {
        let now = one(api, snapshot).is(200);
        Ok((now["state"] == state).then_some(now))
    })
}

fn delete(api: &Api, snapshot: &Value) -> Answer {
    api.raw("DELETE", &path(snapshot), None).unwrap()
}

/// All snapshots of the caller.
fn all(api: &Api) -> Vec<Value> {
    let listed = api.get("/api/snapshot/").is(200);
    listed.as_array().unwrap().clone()
}

pub fn restore(api: &Api, snapshot: &Value, first: bool) -> Answer {
    let body = json!({ "snapshot_first": first });
    let path = format!("{}restore/", path(snapshot));
    api.send("POST", &path, &body).unwrap()
}

/// Requests an instance from a snapshot.
pub fn clone(api: &Api, snapshot: &Value) -> Answer {
    let mut body = wharf_tests::small("container");
    let fields = body.as_object_mut().unwrap();
    for absent in ["flavor", "resource_type"] {
        fields.remove(absent);
    }
    let path = format!("{}clone/", path(snapshot));
    api.send("POST", &path, &body).unwrap()
}

/// Stops a running instance, and waits until it is.
fn stop(api: &Api, instance: &Value) -> Value {
    api.act(uuid(instance), "stop").is(200);
    api.wait_for(uuid(instance), "exited").unwrap()
}

/// Creates the smallest container, and stops it.
pub fn stopped(api: &Api) -> Value {
    stop(api, &crate::running(api))
}

/// The types of events about an instance and its snapshots.
fn events(api: &Api, instance: &Value) -> Vec<String> {
    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let own = events.as_array().unwrap().iter();
    let own = own.filter(|event| event["instance"] == instance["uuid"]);
    own.map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until an instance has an event of this type, and returns the last such one.
pub fn until_event(api: &Api, instance: &Value, kind: &str) -> Value {
    wait_until(&format!("the event {kind}"), || {
        let events = api.get("/api/event/?after=0&limit=1000").is(200);
        let events = events.as_array().unwrap();
        let found = events
            .iter()
            .rev()
            .find(|event| event["instance"] == instance["uuid"] && event["type"] == kind);
        Ok(found.cloned())
    })
}

/// The number of events of this type about an instance and its snapshots.
pub fn count(api: &Api, instance: &Value, kind: &str) -> usize {
    let kinds = events(api, instance);
    kinds.iter().filter(|known| *known == kind).count()
}

/// Waits until there are this many events of this type.
pub fn until_count(api: &Api, instance: &Value, kind: &str, n: usize) {
    until_true(&format!("{n} events {kind}"), || {
        count(api, instance, kind) >= n
    });
}

/// Fails unless this many snapshots hold their claims for a while, those that are deleted included.
fn holds(api: &Api, n: u64) {
    wharf_tests::observed(api, "one", 2).unwrap();
    wharf_tests::interval(std::time::Duration::from_millis(500));
    assert_eq!(used(api, "n_snapshots"), n);
}

/// Waits until no snapshot holds anything.
fn until_free(api: &Api) {
    until_true("the claims are free", || used(api, "n_snapshots") == 0);
}
