//! An instance of each example's flavor, created over REST.

use crate::{built, start};
use serde_json::{Value, json};
use std::path::Path;

/// Installs a provider, creates an instance of its flavor, waits until it runs, and deletes it.
fn live(component: &Path, name: &str, flavor: &str) -> Value {
    let plugins = tempfile::tempdir().unwrap();
    std::fs::copy(component, plugins.path().join(name)).unwrap();
    let server = start(plugins.path()).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let mut body = wharf_tests::small("container");
    body["flavor"] = json!(flavor);
    let created = api.create(&body).unwrap().expect(201).unwrap();
    let uuid = created["uuid"].as_str().unwrap();
    let running = api.wait_for(uuid, "running").unwrap();
    assert_eq!(running["flavor"], flavor);
    assert!(!server.log().contains("ERROR"), "{}", server.log());
    api.delete(uuid).unwrap().expect(204).unwrap();
    server.finish().unwrap();
    running
}

#[test]
fn the_example_in_rust() {
    let instance = live(built::rust(), "flavors-team.wasm", "team");
    assert!(instance["ssh_command"].is_string(), "{instance}");
    assert!(instance["webapp_url"].is_null(), "{instance}");
}

#[test]
fn the_example_in_python() {
    let instance = live(built::python(), "flavors-slides.wasm", "slides");
    assert!(instance["ssh_command"].is_null(), "{instance}");
    assert!(instance["webapp_url"].is_string(), "{instance}");
}

#[test]
fn both_examples_work_beside_the_standard_flavors() {
    let plugins = tempfile::tempdir().unwrap();
    for (component, name) in [
        (built::rust(), "flavors-team.wasm"),
        (built::python(), "flavors-slides.wasm"),
    ] {
        std::fs::copy(component, plugins.path().join(name)).unwrap();
    }
    let server = start(plugins.path()).unwrap();
    let api = server.user("ann@example.com").unwrap();
    for flavor in ["team", "slides", "base"] {
        let mut body = wharf_tests::small("container");
        body["flavor"] = json!(flavor);
        let created = api.create(&body).unwrap().expect(201).unwrap();
        api.wait_for(created["uuid"].as_str().unwrap(), "running")
            .unwrap();
    }
    // A flavor runs only as the resource types of its provider.
    let mut vm = wharf_tests::small("vm");
    vm["flavor"] = json!("team");
    let refused = api.create(&vm).unwrap().expect(400).unwrap();
    assert!(refused["flavor"].is_array(), "{refused}");
    server.finish().unwrap();
}
