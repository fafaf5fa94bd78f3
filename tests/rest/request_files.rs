//! Request files: their approval by hash, the requests that they lack, and `wharf plugin`.

use crate::{has, running, uuid};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, Server, Shell, simulated_node};

const PLUGIN: &str = "target/plugins/wasm32-wasip2/plugin/driver_simulated.wasm";
const FILE: &str = "plugins/driver-simulated/requests.toml";
const NAME: &str = "driver-mine.requests.toml";

/// A directory with a driver of an operator's, and its requests with this text.
fn directory(requests: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(root().join(PLUGIN), dir.path().join("driver-mine.wasm")).unwrap();
    fs::write(dir.path().join(NAME), requests).unwrap();
    dir
}

fn settings(dir: &Path, pins: &str) -> String {
    let node = simulated_node("one", "").replace("driver = \"simulated\"", "driver = \"mine\"");
    let (dir, ports) = (dir.display(), Ports::take().settings());
    format!("plugins_dir = \"{dir}\"\n{ports}[plugins]\n{pins}\n{node}")
}

fn refusal(dir: &Path, pins: &str) -> String {
    Server::refused(&settings(dir, pins)).unwrap()
}

fn shipped() -> String {
    fs::read_to_string(root().join(FILE)).unwrap()
}

/// The line of the configuration that a text tells, such as `"driver-mine.requests.toml" = "sha256:…"`.
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
fn requests_serve_once_the_hash_of_their_file_is_approved() {
    let requests = shipped();
    let dir = directory(&requests);
    let message = refusal(dir.path(), "");
    has(&message, "driver-mine.requests.toml is not approved");
    let pin = approval(&message);
    let server = crate::serve(&settings(dir.path(), &pin));
    let api = server.user("ann@example.com").unwrap();
    running(&api);
    server.finish().unwrap();

    fs::write(dir.path().join(NAME), format!("{requests}\n# changed\n")).unwrap();
    let message = refusal(dir.path(), &pin);
    assert!(message.contains("not the pinned one"), "{message}");
    fs::remove_file(dir.path().join(NAME)).unwrap();
    let message = refusal(dir.path(), &pin);
    assert!(message.contains("there is no such plugin"), "{message}");
}

#[test]
fn a_driver_gets_no_request_that_its_file_lacks() {
    let requests = shipped();
    let (before, rest) = requests.split_once("[request.create]").unwrap();
    let (_, after) = rest.split_once("[request.resize]").unwrap();
    let dir = directory(&format!("{before}[request.resize]{after}"));
    let pin = approval(&refusal(dir.path(), ""));
    let server = crate::serve(&settings(dir.path(), &pin));
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "error").unwrap();
    let log = server.log();
    let refused = "there is no request \\\"create\\\"";
    has(&log, refused);
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    let requests = shipped();
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
        let dir = directory(&requests.replacen(old, new, 1));
        let pin = approval(&refusal(dir.path(), ""));
        let message = refusal(dir.path(), &pin);
        has(&message, words);
    }
    let dir = directory(&requests);
    let renamed = dir.path().join("mine.requests.toml");
    fs::rename(dir.path().join(NAME), renamed).unwrap();
    let message = refusal(dir.path(), "");
    assert!(message.contains("driver-NAME.requests.toml"), "{message}");
}

#[test]
fn the_policy_of_an_earlier_version_is_refused_with_the_way_on() {
    let dir = directory(&shipped());
    let hash = "0".repeat(64);
    let message = refusal(
        dir.path(),
        &format!("\"driver-mine.policy.toml\" = \"sha256:{hash}\""),
    );
    has(&message, "plugins.driver-mine.policy.toml");
    has(&message, "docs/plugins.md");
}

#[test]
fn the_command_explains_a_file_and_tells_its_hash() {
    let shell = Shell::new().unwrap();
    let open = "path = \"/{argument.at}\"\narguments.at = { pattern = \"[a-z]+\" }";
    let dir = directory(&shipped().replace("path = \"/info\"", open));
    let path = dir.path().join(NAME);
    let path = path.to_str().unwrap();
    let words = shell.ok(&["plugin", "check", path]).unwrap();
    for part in [
        "Engines of kind \"simulated\".",
        "The driver may change:",
        "create: Creates the machine.",
        "PUT /instances/{instance}",
        "only in the call that creates an instance",
        "n_vcpus: {size.vcpus}",
        "node_ports: for each of {published}",
        "gpus: {gpus}",
        "the driver chooses {argument.grace-ms}: an integer up to 3600000",
        "warning: request.info: the path /{argument.at} leaves a part to the driver",
        "with 1 warning\n",
    ] {
        has(&words, part);
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
        ("driver-mine.wasm", "its requests are in"),
        ("gone.requests.toml", "cannot read"),
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

#[test]
fn the_command_prints_a_request_of_a_sample_call() {
    let shell = Shell::new().unwrap();
    let dir = directory(&shipped());
    let path = dir.path().join(NAME);
    let path = path.to_str().unwrap();
    let sample = dir.path().join("sample.json");
    let vm = json!({ "call": "change", "kind": "vm", "ports": [22, 80] });
    fs::write(&sample, vm.to_string()).unwrap();
    let sample = sample.to_str().unwrap();
    let instance = "/instances/0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
    let render = |arguments: &[&str]| {
        let all = [&["plugin", "render"], arguments].concat();
        shell.run(&all).unwrap()
    };

    let created = render(&[path, "create"]);
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let (target, body) = created.stdout.split_once("\n\n").unwrap();
    assert_eq!(target, format!("PUT {instance}"));
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["hostname"], "demo");
    let port = json!({ "address": "0.0.0.0", "port": 20001 });
    assert_eq!(body["node_ports"], json!([port]));

    let ports = render(&["simulated", "ports", "--call", sample]);
    let wanted = format!("PUT {instance}/ports?incarnation=3\n\n[\n  22,\n  80\n]\n");
    assert_eq!(ports.stdout, wanted, "{}", ports.stderr);
    let stop = render(&[
        "simulated",
        "stop",
        "--call",
        sample,
        "--set",
        "grace-ms=500",
    ]);
    let wanted = format!("POST {instance}/stop?grace-ms=500&incarnation=3\n");
    assert_eq!(stop.stdout, wanted, "{}", stop.stderr);

    for (arguments, words) in [
        (vec!["pause"], "there is no request \"pause\""),
        (vec!["stop"], "stop: argument grace-ms: required"),
        (vec!["stop", "--set", "grace"], "must be NAME=VALUE"),
        (vec!["stop", "--call", "/nowhere/s.json"], "cannot read"),
    ] {
        let refused = render(&[&["simulated"], arguments.as_slice()].concat());
        assert_ne!(refused.code, Some(0), "{}", refused.stdout);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}
