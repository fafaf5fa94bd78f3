//! `wharf check`: a configuration against the claims of instances, while the server runs and stopped.

use crate::{has, made, start_on, until_logged, with};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Result, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Authority, Server, docker_node, lasting_node, simulated_node};

/// Checks this configuration in place of the server's; returns the exit status and the output.
fn check(server: &Server, config: &str) -> (Option<i32>, String) {
    let file = server.config_path().with_file_name("other.toml");
    checked(&wharf_binary(), &file, config)
}

/// Checks nodes without a server.
fn check_nodes(nodes: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let config = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{nodes}");
    checked(&wharf_binary(), &dir.path().join("wharf.toml"), &config).1
}

/// Checks a configuration with this program.
pub fn checked(program: &Path, file: &Path, config: &str) -> (Option<i32>, String) {
    fs::write(file, config).unwrap();
    let mut wharf = Command::new(program);
    let output = wharf
        .args(["check", "--config"])
        .arg(file)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_console_behind_a_proxy_without_a_name_is_warned_about() {
    let node = simulated_node("one", "");
    let proxied = format!("base_url = \"https://wharf.example\"\n{node}");
    let named = format!("trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n{proxied}");
    let warned = |nodes: &str| check_nodes(nodes).contains("setting `trusted_proxies`");
    assert!(warned(&proxied));
    assert!(!warned(&named) && !warned(&node));
    has(check_nodes(&proxied), "has no errors and 1 warning\n");
    let wrong = check_nodes(&named.replace("10.0.0.0/8", "proxy.example"));
    for part in ["`trusted_proxies`", "\"proxy.example\"", "10.0.0.0/24"] {
        assert!(wrong.contains(part), "{wrong}");
    }
}

#[test]
fn private_ports_that_others_reach_are_warned_about() {
    let public = simulated_node("one", "publish_address = \"192.0.2.7\"");
    let with = |address: &str| {
        let own = format!("private_address = \"{address}\"\nsettings");
        check_nodes(&public.replace("settings", &own))
    };
    let setting = "warning: setting `node.one.private_address`: ";
    assert!(!check_nodes(&public).contains(setting));
    assert!(!with("192.0.2.8").contains(setting));
    let found = with("192.0.2.7");
    let problem = format!("{setting}is the address of public ports too");
    assert!(found.contains(&problem), "{found}");

    let authority = Authority::new().unwrap();
    let tls = authority.issue("wharf", &[]).unwrap();
    let far = format!(
        "[[node]]\nname = \"one\"\ndriver = \"docker\"\nendpoint = \"https://192.0.2.1:2376\"\n\
         capacity = {{ n_vcpus = 1, mem_gib = 1, disk_size_gib = 10 }}\n{}",
        tls.node_tls(&authority.ca()),
    );
    let found = check_nodes(&far);
    let problem = format!("{setting}private ports have the address of public ones");
    assert!(found.contains(&problem), "{found}");
}

/// The server's start tells it, since a check does not ask a simulated engine.
#[test]
fn images_without_an_ssh_server_for_a_private_port_are_named() {
    let images = "\"localhost/wharf/marimo:1\", \"localhost/wharf/base:1\"";
    let (server, _) = start_on(
        "",
        &simulated_node("one", &format!("images_without_ssh = [{images}]")),
    );
    // The public SSH of `base` shows by itself if a server listens.
    until_logged(
        &server,
        "no SSH server is in localhost/wharf/marimo:1, so users have no shell",
    );
}

#[test]
fn contradictions_with_claims_name_the_setting_and_the_remedy() {
    let (node, _engine) =
        lasting_node("one", "gpus = [{ model = \"L4\", device = \"L4#0\" }]").unwrap();
    let node = node.replace(
        "settings",
        "gpus = [{ model = \"L4\", count = 1 }]\nsettings",
    );
    let (mut server, api) = start_on("", &node);
    let body = with("container", json!({ "n_vcpus": 4, "gpu_model": "L4" }));
    made(&api, &body);
    let config = fs::read_to_string(server.config_path()).unwrap();
    let cases = [
        (
            "n_vcpus = 16",
            "n_vcpus = 2",
            "node.one.capacity.n_vcpus",
            "at least 4",
        ),
        (
            "name = \"one\"",
            "name = \"two\"",
            "setting `node`",
            "retired = true",
        ),
        (
            "count = 1",
            "devices = [\"other\"]",
            "node.one.gpus",
            "L4#0",
        ),
        (
            "settings",
            "lan_cidr = \"10.99.0.0/16\"\nsettings",
            "node.one.lan_cidr",
            "10.80.0.",
        ),
    ];
    for running in [true, false] {
        if !running {
            server.terminate().unwrap();
        }
        let (status, text) = check(&server, &config);
        assert_eq!(status, Some(0), "{text}");
        for (given, wrong, setting, part) in cases {
            let (status, text) = check(&server, &config.replace(given, wrong));
            assert_eq!(status, Some(1), "{text}");
            assert!(
                text.contains("error: setting") && text.contains(setting),
                "{text}"
            );
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // A warning alone does not fail, and an invalid configuration does.
    let public = config.replace("listen = \"127.0.0.1", "listen = \"0.0.0.0");
    let (status, text) = check(&server, &public);
    assert!(
        status == Some(0) && text.contains("warning: setting `tls`"),
        "{text}"
    );
    let (status, text) = check(&server, &config.replace("listen", "listne"));
    assert!(status == Some(1) && text.contains("listne"), "{text}");
    server.run().unwrap();
}

/// The answers of an Incus member without images, whose pool has no limits: one object with the fields of
/// all that a probe reads.
const INCUS: &str = r#"{
    "auth": "trusted", "status": "Online", "driver": "dir",
    "environment": { "server_version": "6.0.4", "server_name": "m1", "server_clustered": true },
    "cpu": { "total": 4 }, "memory": { "total": 8589934592 }, "space": { "total": 8589934592 }
}"#;

fn answer(stream: UnixStream) -> Result<()> {
    let mut writer = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next() {
        let is_images = line?.contains("/1.0/images?");
        for header in lines.by_ref() {
            if header?.is_empty() {
                break;
            }
        }
        let metadata = if is_images { "[]" } else { INCUS };
        let body = format!("{{ \"type\": \"sync\", \"metadata\": {metadata} }}");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
        write!(writer, "{head} {}\r\n\r\n{body}", body.len())?;
    }
    Ok(())
}

#[test]
fn findings_name_only_settings_of_the_nodes_driver() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("incus.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    let endpoint = format!("unix://{}", socket.display());
    let node = docker_node("one", &endpoint, ["10.79.0.0/16", "198.18.99.0/28"], "");
    let settings = "settings = { member = \"m1\", gateway = \"10.79.0.1\", ";
    let node = node.replace("\"docker\"", "\"incus\"");
    let text = check_nodes(&node.replace("settings = { ", settings));
    for part in [
        "setting `node.one.endpoint`: the engine lacks localhost/wharf/base:1",
        "wharf images build",
        "setting `node.one.endpoint`: the engine does not enforce disk sizes",
        "such as btrfs",
    ] {
        has(&text, part);
    }
    for part in ["settings.", "prefix", "lxcfs", "\"off\""] {
        assert!(!text.contains(part), "{part} is in: {text}");
    }
}

#[test]
fn the_error_of_a_setting_is_told_once() {
    let node = docker_node(
        "m1",
        "unix:///nowhere",
        ["10.79.0.0/16", "198.18.99.0/28"],
        "",
    );
    let node = node.replace("\"docker\"", "\"incus\"");
    let text = check_nodes(&node);
    assert_eq!(text.matches("member: required").count(), 1, "{text}");
    let text = check_nodes(&node.replace("settings = {", "settings = { member = \"m1\","));
    let error = "error: setting `node.m1.settings.gateway`: bridge mode needs";
    assert!(text.contains(error), "{text}");
    let simulated = simulated_node("m1", "ready = 1");
    let text = Server::refused(&simulated).unwrap();
    assert_eq!(text.matches("unknown field `ready`").count(), 1, "{text}");
}

#[test]
fn a_cluster_within_which_nothing_moves_is_named_with_its_nodes() {
    let node = |name: &str, cluster: &str| {
        let node = simulated_node(name, "");
        node.replace("settings", &format!("cluster = \"{cluster}\"\nsettings"))
    };
    let two = format!("{}{}", node("a", "red"), node("b", "red"));
    let text = check_nodes(&two);
    assert!(!text.contains(".cluster`"), "{text}");

    let text = check_nodes(&format!("{two}{}", node("c", "rde")));
    let alone = "warning: setting `node.c.cluster`: no other node is in the cluster \"rde\"";
    assert!(text.contains(alone), "{text}");

    let far = |name| {
        let node = docker_node(
            name,
            "unix:///nowhere",
            ["10.99.0.0/16", "198.18.9.0/28"],
            "",
        );
        node.replace("settings", "cluster = \"red\"\nsettings")
    };
    let text = check_nodes(&format!("{two}{}", far("c")));
    for name in ["a", "c"] {
        let found = format!("warning: setting `node.{name}.cluster`: ");
        assert!(text.contains(&found), "{text}");
    }
    assert!(text.contains("a and b (simulated), c (docker)"), "{text}");

    let text = check_nodes(&format!("{}{}", far("c"), far("d")));
    let fixed = "the driver \"docker\" cannot move instances between c and d";
    assert!(text.contains(fixed), "{text}");
}

#[test]
fn ranges_of_a_cluster_are_equal_or_apart() {
    let node = |name: &str, cluster: &str, lan: &str| {
        let own = format!("cluster = \"{cluster}\"\nlan_cidr = {lan}\nsettings");
        simulated_node(name, "").replace("settings", &own)
    };
    let first = node("a", "red", "\"10.80.0.0/16\"");
    let found = |cluster: &str, lan: &str| {
        let text = check_nodes(&format!("{first}{}", node("b", cluster, lan)));
        let found = text.lines().find(|line| line.contains(".lan_cidr`"));
        found.map(str::to_owned)
    };
    assert_eq!(found("red", "\"10.80.0.0/16\""), None);
    assert_eq!(found("red", "\"10.81.0.0/16\""), None);
    assert_eq!(found("blue", "\"10.80.0.0/17\""), None);
    for (lan, part) in [
        ("\"10.80.0.0/17\"", "10.80.0.0/17 in subnets of /24"),
        (
            "\"10.80.0.0/16\"\nlan_subnet_prefix = 25",
            "10.80.0.0/16 in subnets of /25",
        ),
    ] {
        let found = found("red", lan).unwrap();
        let setting = "warning: setting `node.b.lan_cidr`: ";
        assert!(
            found.starts_with(setting) && found.contains(part),
            "{found}"
        );
        assert!(found.contains("of the node a in its cluster"), "{found}");
    }
}
