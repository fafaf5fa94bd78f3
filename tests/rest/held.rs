//! Ports, addresses and GPUs that something outside Wharf holds on the node: an instance gets others, or
//! its owner hears of it at once, and nothing is billed for them.

use crate::bill::total_of;
use crate::{Expected, has, made, running, uuid, with};
use serde_json::json;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use wharf_tests::{Api, Ports, Server, simulated_node, small};

/// A server with a node on which a file lists what something else holds.
struct Held {
    server: Server,
    api: Api,
    file: PathBuf,
    _dir: TempDir,
}

impl Held {
    /// Starts the server, with this number of SSH ports.
    fn start(ssh_ports: u16) -> (Self, u16) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("held");
        let ports = Ports::take();
        let settings = format!(
            "[ssh_ports]\nfrom = {}\nto = {}\n[web]\nfrom = {}\nto = {}\n",
            ports.from,
            ports.from + ssh_ports - 1,
            ports.to - 1,
            ports.to
        );
        let node = simulated_node(
            "one",
            &format!("held_in = {:?}", file.display().to_string()),
        );
        let node = node.replace(
            "settings = {",
            &format!(
                "gpus = [{{ model = \"L4\", count = 2 }}]\nsettings = {{ gpus = [{}],",
                "{ model = \"L4\", device = \"L4#0\" }, { model = \"L4\", device = \"L4#1\" }"
            ),
        );
        let server = crate::serve(&format!("provisioning_deadline_s = 60\n{settings}{node}"));
        let api = server.user("ann@example.com").unwrap();
        let held = Self {
            server,
            api,
            file,
            _dir: dir,
        };
        (held, ports.from)
    }

    fn hold(&self, lines: &[impl Display]) {
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        fs::write(&self.file, lines.join("\n")).unwrap();
    }

    fn billed(&self) -> f64 {
        total_of(&self.server.cli(&["bill", "ann@example.com"]).unwrap())
    }
}

#[test]
fn another_port_is_taken_for_one_that_something_else_holds() {
    let (held, first) = Held::start(8);
    held.hold(&[first, first + 1]);
    let created = held.api.small_container().unwrap();
    let ready = held.api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(ready["wan_ssh_port"], first + 2);
    let events = held
        .api
        .get(&format!("/api/event/?instance={}", uuid(&created)));
    let events = events.is(200);
    let told = events.as_array().unwrap().iter();
    let told: Vec<_> = told
        .filter(|event| event["type"] == "reallocated")
        .collect();
    assert_eq!(told.len(), 2, "{events}");
    let text = told[0]["message"].as_str().unwrap();
    assert!(text.contains(&format!("SSH port {first}")), "{text}");
    // Both are kept out of later placements, and the operator sees them.
    let next = running(&held.api);
    assert_eq!(next["wan_ssh_port"], first + 3);
    let nodes = held.server.cli(&["node", "list"]).unwrap();
    let said = format!("node one: something outside Wharf holds SSH port {first} until ");
    assert!(nodes.contains(&said), "{nodes}");
    let config = fs::read_to_string(held.server.config_path()).unwrap();
    let other = held.server.config_path().with_file_name("other.toml");
    let (_, found) =
        crate::check::checked(&wharf_testkit::workspace::wharf_binary(), &other, &config);
    has(&found, format!("holds SSH port {first}"));
}

#[test]
fn an_instance_without_any_free_port_fails_at_once_and_costs_nothing() {
    let (held, first) = Held::start(2);
    held.hold(&[first, first + 1]);
    let created = held.api.small_container().unwrap();
    held.api.wait_for(uuid(&created), "error").unwrap();
    let path = format!("/api/event/?instance={}", uuid(&created));
    let events = held.api.get(&path).is(200).to_string();
    has(&events, "\"type\":\"failed\"");
    has(&events, "something outside Wharf holds SSH port");
    assert!(held.billed().abs() < 1e-12, "{}", held.billed());
    let refused = held.api.create(&small("container")).is(422);
    assert_eq!(refused["detail"]["bottleneck"], json!(["wan_ssh_port"]));
}

#[test]
fn another_address_network_or_gpu_is_taken() {
    let (held, _) = Held::start(8);
    let gpu = with("container", json!({ "gpu_model": "L4" }));
    held.hold(&["L4#0"]);
    let ready = made(&held.api, &gpu);
    let address = ready["lan_ipv4"].as_str().unwrap().to_owned();
    let (network, last) = address.rsplit_once('.').unwrap();
    let next: u32 = last.parse::<u32>().unwrap() + 1;
    held.hold(&[format!("{network}.{next}")]);
    let second = running(&held.api);
    assert_eq!(second["lan_ipv4"], format!("{network}.{}", next + 1));
    // A network that cannot be made: another one is taken for an owner without instances.
    let bob = held.server.user("bob@example.com").unwrap();
    let begun = running(&bob);
    bob.delete(uuid(&begun)).is(204);
    let (network, _) = begun["lan_ipv4"]
        .as_str()
        .unwrap()
        .rsplit_once('.')
        .unwrap();
    held.hold(&[format!("{network}.")]);
    crate::wait_until("bob's network is free", || {
        let nodes = held.server.cli(&["node", "list"])?;
        Ok(nodes.contains(" 2 ").then_some(()))
    });
    let moved = running(&bob);
    assert!(
        !moved["lan_ipv4"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{network}."))
    );
}

#[test]
fn a_start_without_its_port_is_422_at_once_and_is_not_billed() {
    let (held, first) = Held::start(8);
    let instance = running(&held.api);
    held.api.act(uuid(&instance), "stop").is(200);
    held.hold(&[first]);
    let refused = held.api.act(uuid(&instance), "restart").is(422);
    assert_eq!(refused["detail"]["bottleneck"], json!(["wan_ssh_port"]));
    assert_eq!(
        refused["detail"]["nearest_available"],
        json!({ "wan_ssh_port": 0 })
    );
    assert_eq!(
        held.api.instance(uuid(&instance)).is(200)["state"],
        "exited"
    );
    fs::remove_file(&held.file).unwrap();
    held.api.act(uuid(&instance), "restart").is(200);
    held.api.wait_for(uuid(&instance), "running").unwrap();
}
