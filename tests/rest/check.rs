//! `wharf check`: a configuration against the claims of instances, while the server runs and stopped.

use crate::uuid;
use serde_json::json;
use std::process::Command;
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Ports, Server, lasting_node, small};

/// Checks this configuration in place of the server's; returns the exit status and the output.
fn check(server: &Server, config: &str) -> (Option<i32>, String) {
    let file = server.config_path().with_file_name("other.toml");
    std::fs::write(&file, config).unwrap();
    let mut wharf = Command::new(wharf_binary());
    let output = wharf
        .args(["check", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn contradictions_with_claims_name_the_setting_and_the_remedy() {
    let (node, _engine) =
        lasting_node("one", "gpus = [{ model = \"L4\", device = \"L4#0\" }]").unwrap();
    let node = node.replace(
        "settings",
        "gpus = [{ model = \"L4\", count = 1 }]\nsettings",
    );
    let mut server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let mut body = small("container");
    body["n_vcpus"] = json!(4);
    body["gpu_model"] = json!("L4");
    let created = api.create(&body).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let config = std::fs::read_to_string(server.config_path()).unwrap();
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
    server.finish().unwrap();
}
