//! Private ports: the address of each published port on the node.

use crate::moves::machines;
use crate::{Expected, start_on, uuid, with};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use wharf_tests::{Api, lasting_node};

const FLAVORS: &str = "[[flavor]]\nname = \"pages\"\nimage = \"localhost/team/pages:1\"\nweb_port = 8000\n\
                       ssh = true\n\
                       [[flavor]]\nname = \"reports\"\nimage = \"localhost/team/reports:1\"\nweb_port = 8000\n";

/// The ports of a new instance: the address of each, and the instance.
fn created(api: &Api, engine: &Path, kind: &str, flavor: &str) -> (Vec<Value>, Value) {
    let created = api.create(&with(kind, json!({ "flavor": flavor })));
    let id = uuid(&created.is(201)).to_owned();
    let running = api.wait_for(&id, "running").unwrap();
    let ports = machines(engine)[&id]["wanted"]["node_ports"].clone();
    let address = |port: &Value| port["address"].clone();
    let addresses = ports.as_array().unwrap().iter().map(address).collect();
    (addresses, running)
}

#[test]
fn ssh_of_a_page_has_a_private_port_and_other_ports_are_public() {
    let (node, dir) = lasting_node("one", "publish_address = \"192.0.2.7\"").unwrap();
    let engine = dir.path().join("engine");
    let private = node.replace("settings", "private_address = \"192.0.2.8\"\nsettings");
    for (node, private) in [(&private, "192.0.2.8"), (&node, "127.0.0.1")] {
        let (server, api) = start_on("", &format!("{FLAVORS}{node}"));
        let (ports, base) = created(&api, &engine, "container", "base");
        assert_eq!(ports, ["192.0.2.7"]);
        assert!(base["ssh_command"].is_string());
        let (ports, _) = created(&api, &engine, "vm", "base");
        assert_eq!(ports, ["192.0.2.7"]);
        for flavor in ["pages", "marimo"] {
            let (ports, page) = created(&api, &engine, "container", flavor);
            assert_eq!(ports, [private, "192.0.2.7"], "{flavor}");
            assert!(page["ssh_command"].is_null() && page["webapp_url"].is_string());
        }
        // Its image has no SSH server.
        let (ports, _) = created(&api, &engine, "container", "reports");
        assert_eq!(ports, ["192.0.2.7"]);
        server.finish().unwrap();
        fs::remove_file(&engine).unwrap();
    }
    // The gateway alone leads to a page.
    let pages = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";
    let (_server, api) = start_on("", &format!("{pages}{FLAVORS}{private}"));
    for (flavor, count) in [("marimo", 2), ("reports", 1)] {
        let (ports, _) = created(&api, &engine, "container", flavor);
        assert_eq!(ports, vec!["192.0.2.8"; count], "{flavor}");
    }
    let (ports, _) = created(&api, &engine, "container", "base");
    assert_eq!(ports, ["192.0.2.7"]);
}
