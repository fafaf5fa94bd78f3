//! Policies of drivers: approval by hash, what a policy refuses, and `wharf plugin check`.

use crate::{has, running, uuid};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, Server, Shell, simulated_node};

const PLUGIN: &str = "target/plugins/wasm32-wasip2/plugin/driver_simulated.wasm";
const POLICY: &str = "plugins/driver-simulated/policy.toml";
const NAME: &str = "driver-mine.policy.toml";

/// A directory with a driver of an operator's, and its policy with this text.
fn directory(policy: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(root().join(PLUGIN), dir.path().join("driver-mine.wasm")).unwrap();
    fs::write(dir.path().join(NAME), policy).unwrap();
    dir
}

fn start(dir: &Path, pins: &str) -> anyhow::Result<Server> {
    let node = simulated_node("one", "").replace("driver = \"simulated\"", "driver = \"mine\"");
    Server::start(&format!(
        "plugins_dir = \"{}\"\n{}[plugins]\n{pins}\n{node}",
        dir.display(),
        Ports::take().settings()
    ))
}

fn refusal(dir: &Path, pins: &str) -> String {
    match start(dir, pins) {
        Ok(_) => panic!("the policy was accepted"),
        Err(error) => format!("{error:#}"),
    }
}

/// The line of the configuration that a text tells, such as `"driver-mine.policy.toml" = "sha256:…"`.
fn approval(text: &str) -> String {
    let start = text.find(&format!("\"{NAME}\" = \"sha256:")).unwrap();
    let line = &text[start..];
    let end = line
        .rfind('"')
        .unwrap()
        .min(line.find('\n').unwrap_or(line.len()));
    line[..end].trim_end_matches(['"', '\n']).to_owned() + "\""
}

#[test]
fn a_policy_serves_once_its_hash_is_approved() {
    let policy = fs::read_to_string(root().join(POLICY)).unwrap();
    let dir = directory(&policy);
    let message = refusal(dir.path(), "");
    has(&message, "driver-mine.policy.toml is not approved");
    let pin = approval(&message);
    let server = start(dir.path(), &pin).unwrap();
    let api = server.user("ann@example.com").unwrap();
    running(&api);
    server.finish().unwrap();

    fs::write(dir.path().join(NAME), format!("{policy}\n# changed\n")).unwrap();
    let message = refusal(dir.path(), &pin);
    assert!(message.contains("not the pinned one"), "{message}");
    fs::remove_file(dir.path().join(NAME)).unwrap();
    let message = refusal(dir.path(), &pin);
    assert!(message.contains("there is no such plugin"), "{message}");
}

#[test]
fn a_driver_gets_nothing_that_its_policy_does_not_list() {
    let policy = fs::read_to_string(root().join(POLICY)).unwrap();
    let (before, rest) = policy.split_once("[request.create]").unwrap();
    let (_, after) = rest.split_once("[request.resize]").unwrap();
    let dir = directory(&format!("{before}[request.resize]{after}"));
    let pin = approval(&refusal(dir.path(), ""));
    let server = start(dir.path(), &pin).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "error").unwrap();
    let log = server.log();
    let refused = "PUT on this path";
    assert!(log.contains(refused), "{refused} is not in: {log}");
    server.finish().unwrap();
}

#[test]
fn a_wrong_policy_is_refused_with_its_place() {
    let policy = fs::read_to_string(root().join(POLICY)).unwrap();
    for (old, new, words) in [
        (
            "kind = \"simulated\"",
            "kind = \"other\"",
            "must be \"simulated\"",
        ),
        (
            "{size.vcpus}",
            "{size.cores}",
            "there is no {size.cores} here",
        ),
        ("in-process = true", "in-process = false", "unix:///"),
        ("[request.info]", "[request.info", "line "),
    ] {
        let dir = directory(&policy.replacen(old, new, 1));
        let pin = approval(&refusal(dir.path(), ""));
        let message = refusal(dir.path(), &pin);
        assert!(message.contains(words), "{words} is not in: {message}");
    }
    let dir = directory(&policy);
    fs::rename(dir.path().join(NAME), dir.path().join("mine.policy.toml")).unwrap();
    let message = refusal(dir.path(), "");
    assert!(message.contains("driver-NAME.policy.toml"), "{message}");
}

#[test]
fn the_command_explains_a_policy_and_tells_its_hash() {
    let shell = Shell::new().unwrap();
    let policy = fs::read_to_string(root().join(POLICY)).unwrap();
    let dir = directory(&policy.replace("path = \"/info\"", "path = \"/{any}\""));
    let path = dir.path().join(NAME);
    let path = path.to_str().unwrap();
    let words = shell.ok(&["plugin", "check", path]).unwrap();
    for part in [
        "Engines of kind \"simulated\".",
        "The driver may change:",
        "create: Creates the machine.",
        "PUT /instances/{instance}",
        "only in the call that creates the instance",
        "n_vcpus: {size.vcpus}",
        "node_ports:",
        "each item: for one of {published}",
        "with: {published.node_port}",
        "each item: one of {gpus}",
        "warning: request.info: the path /{any} leaves a part to the driver",
        "with 1 warnings",
    ] {
        assert!(words.contains(part), "{part} is not in: {words}");
    }
    assert_eq!(approval(&words), approval(&refusal(dir.path(), "")));

    let embedded = shell.ok(&["plugin", "check", "driver-simulated"]).unwrap();
    assert!(embedded.contains("with 0 warnings"), "{embedded}");
    assert!(!embedded.contains("[plugins]"), "{embedded}");
    for driver in ["docker", "incus", "simulated"] {
        let words = shell.ok(&["plugin", "check", driver]).unwrap();
        for json in ["{\"", "[{", "\":"] {
            assert!(!words.contains(json), "{json} is in: {words}");
        }
    }

    for (file, words) in [
        ("driver-mine.wasm", "its policy is in"),
        ("gone.policy.toml", "cannot read"),
    ] {
        let path = dir.path().join(file);
        let ended = shell
            .run(&["plugin", "check", path.to_str().unwrap()])
            .unwrap();
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    fs::write(path, json!({ "kind": 1 }).to_string()).unwrap();
    let ended = shell.run(&["plugin", "check", path]).unwrap();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("line 1"), "{}", ended.stderr);
}
