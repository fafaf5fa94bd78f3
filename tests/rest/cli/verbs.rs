//! Every command does its work, and `-o json` prints the objects of the interface.

use super::{refused, signed_in};
use crate::scopes::key;
use crate::{Expected, has, start, until_says, uuid};
use serde_json::{Value, json};
use wharf_tests::KeyPair;

const LIST: &str = "/api/instance/";

fn of(name: &str) -> String {
    format!("{LIST}{name}/")
}

#[test]
fn the_life_of_a_container() {
    let (_server, api, shell) = signed_in("");
    let pair = KeyPair::new().unwrap();
    std::fs::write(shell.home().join("key.pub"), format!("{}\n", pair.public)).unwrap();

    assert_eq!(shell.json(&["ls"], "GET", LIST, 200).unwrap(), json!([]));
    let create = [
        "create", "box", "--vcpus", "2", "--key", "key.pub", "--wait",
    ];
    let created = shell.json(&create, "GET", &of("box"), 200).unwrap();
    assert_eq!(created["state"], "running");
    assert_eq!(created["n_vcpus"], 2);
    assert_eq!(api.list().unwrap().len(), 1);
    let second = ["create", "--type", "vm", "--tier", "high-performance"];
    let second = shell.json(&second, "POST", LIST, 201).unwrap();
    assert_eq!(second["resource_type"], "vm");
    assert_eq!(second["cpu_tier"], "high-performance");

    let shown = shell
        .json(&["show", "box"], "GET", &of("box"), 200)
        .unwrap();
    assert_eq!(shown, api.instance("box").is(200));
    assert_eq!(
        shell
            .json(&["ls"], "GET", LIST, 200)
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let table = shell.ok(&["ls"]).unwrap();
    assert!(table.starts_with("NAME"), "{table}");
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("box ") && line.contains("running"))
    );
    assert!(!table.contains('\x1b'), "colours on a pipe");

    shell
        .json(&["stats", "box"], "GET", "/api/instance/box/stats/", 200)
        .unwrap();
    let stats = shell.ok(&["stats", "box"]).unwrap();
    assert!(stats.contains("of 1 GiB"));
    let (cost, shown) = (
        shell.ok(&["cost"]).unwrap(),
        shell.ok(&["show", "box"]).unwrap(),
    );
    let costs = shown.lines().filter(|line| line.starts_with("usd_"));
    let costs: Vec<_> = costs.collect();
    assert_eq!(costs.len(), 2, "{shown}");
    // People get numbers without exponents, and few decimals. Rates are exact.
    for (text, most) in [(&stats, 2), (&cost, 4), (&costs.join("\n"), 4), (&shown, 9)] {
        let words = text.split([' ', '\n', ',', ';']);
        let numbers = words.filter(|word| word.parse::<f64>().is_ok());
        for number in numbers {
            let decimals = number.split_once('.').map_or(0, |(_, rest)| rest.len());
            assert!(
                !number.contains('e') && decimals <= most,
                "{number}: {text}"
            );
        }
    }
    let has_amount = |of: &str| {
        let mut lines = stats.lines();
        let line = lines.find(|line| line.starts_with(of)).unwrap();
        let amount = line.split_whitespace().nth(1).unwrap();
        let decimals = amount.split_once('.').unwrap().1;
        let has_unit = [" MiB of ", " GiB of "]
            .iter()
            .any(|unit| line.contains(unit));
        assert!(decimals.len() == 2 && has_unit, "{line}");
    };
    ["RAM", "Disk"].iter().for_each(|of| has_amount(of));
    assert!(stats.contains(" MiB of "), "{stats}");
    let resize = ["resize", "box", "--vcpus", "3", "--mem", "2"];
    let resized = shell.json(&resize, "PATCH", &of("box"), 200).unwrap();
    assert_eq!(resized["n_vcpus"], 3);
    assert_eq!(resized["mem_gib"], 2.0);
    let renamed = shell
        .json(&["rename", "box", "crate"], "PATCH", &of("crate"), 200)
        .unwrap();
    assert_eq!(renamed["name"], "crate");

    let stopped = shell.json(&["stop", "crate"], "POST", "/api/instance/crate/stop/", 200);
    assert_eq!(stopped.unwrap()["state"], "shut_off");
    let waited = ["wait", "crate", "--for", "stopped"];
    let waited = shell.json(&waited, "GET", &of("crate"), 200).unwrap();
    assert_eq!(waited["state"], "exited");
    assert!(shell.ok(&["restart", "crate"]).unwrap().contains("crate"));
    shell.ok(&["wait", "crate", "--for", "running"]).unwrap();

    shell.json(&["quota"], "GET", "/api/quota/", 200).unwrap();
    assert!(shell.ok(&["quota"]).unwrap().contains("n_vcpus"));
    let preferences = shell.ok(&["preferences", "--allow-moves", "true"]);
    assert_eq!(preferences.unwrap(), "allow_moves: true\n");
    let name = second["name"].as_str().unwrap();
    let removed = shell.run(&["rm", "--yes", "crate", name]).unwrap();
    assert_eq!((removed.code, removed.stdout.as_str()), (Some(0), ""));
    assert!(api.list().unwrap().is_empty());
    shell.ok(&["wait", "crate", "--for", "deleted"]).unwrap();
}

#[test]
fn ports_of_a_virtual_machine() {
    let (_server, _, shell) = signed_in("");
    shell
        .ok(&["create", "machine", "--type", "vm", "--wait"])
        .unwrap();
    let path = |action| format!("/api/instance/machine/{action}-port/");
    let added = shell.json(
        &["port", "add", "machine", "8080"],
        "POST",
        &path("add"),
        200,
    );
    assert_eq!(added.unwrap()["wan_ports"], json!([22, 8080]));
    let removed = shell.json(
        &["port", "rm", "machine", "8080"],
        "POST",
        &path("remove"),
        200,
    );
    assert_eq!(removed.unwrap()["wan_ports"], json!([22]));
    refused(&shell, &["port", "rm", "machine", "22"], 1, "PORT (port)");
}

#[test]
fn keys_are_created_listed_and_revoked() {
    let (server, _, shell) = signed_in("");
    let create = ["keys", "create", "reader", "--scope", "read"];
    let created = shell.json(&create, "POST", "/api/key/", 201).unwrap();
    assert_eq!(created["scopes"], json!(["read"]));
    let key = created["key"].as_str().unwrap();
    let environment = [("WHARF_URL", server.base_url()), ("WHARF_API_KEY", key)];
    let write = shell.run_with(&["create"], &environment, "").unwrap();
    assert_eq!(write.code, Some(1));
    assert!(write.stderr.contains("scope `write`"), "{write:?}");

    let listed = shell
        .json(&["keys", "ls"], "GET", "/api/key/", 200)
        .unwrap();
    // The others are those of `start` and of the sign-in.
    assert_eq!(listed.as_array().unwrap().len(), 3);
    let mut names = listed.as_array().unwrap().iter().map(|key| &key["name"]);
    assert!(names.any(|name| name == "reader"));
    let plain = shell.ok(&["keys", "create", "plain"]).unwrap();
    assert_eq!(plain.lines().count(), 1, "stdout has only the key");
    shell
        .ok(&["keys", "rm", created["id"].as_str().unwrap()])
        .unwrap();
    assert_eq!(
        shell.run_with(&["ls"], &environment, "").unwrap().code,
        Some(4)
    );
    let table = shell.ok(&["keys", "ls"]).unwrap();
    assert!(
        table.contains("plain") && !table.contains(plain.trim()),
        "{table}"
    );
}

#[test]
fn a_key_of_write_alone_is_shown_the_id_and_the_state_of_its_changes() {
    let (server, api, shell) = signed_in("");
    let writer = key(&server, &["write"]);
    let environment = [
        ("WHARF_URL", server.base_url()),
        ("WHARF_API_KEY", writer.key()),
    ];
    let run = |args: &[&str]| shell.run_with(args, &environment, "").unwrap();
    let shown = |args: &[&str]| run(args).succeeded().unwrap().stdout;
    let created = shown(&["create", "machine", "--type", "vm"]);
    let made = api.wait_for("machine", "running").unwrap();
    let id = uuid(&made);
    for (text, state) in [
        (created, "provisioning"),
        (shown(&["rename", "machine", "gate"]), "running"),
    ] {
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words, ["state", state, "uuid", id]);
    }
    for (args, state) in [
        (&["port", "add", "gate", "8080"][..], "running"),
        (&["port", "rm", "gate", "8080"], "running"),
        (&["stop", "gate"], "shut_off"),
        (&["restart", "gate"], "running"),
    ] {
        let line = format!("Instance {id} is {state}.\n");
        assert_eq!(shown(args), line, "{args:?}");
    }
    let stopped: Value = serde_json::from_str(&shown(&["stop", "gate", "-o", "json"])).unwrap();
    assert_eq!(stopped, json!({ "uuid": id, "state": "shut_off" }));
    // A wait reads, and its refusal does not hide what was made.
    let waited = run(&["create", "other", "--wait"]);
    assert_eq!(waited.code, Some(1), "{waited:?}");
    has(&waited.stderr, uuid(&api.instance("other").is(200)));
    has(&waited.stderr, "scope `read`");
}

#[test]
fn requests_of_any_kind() {
    let (_server, api, shell) = signed_in("");
    let body =
        r#"{"resource_type":"container","n_vcpus":1,"mem_gib":1,"disk_size_gib":10,"name":"raw"}"#;
    let created = shell.ok(&["api", "POST", LIST, "--data", body]).unwrap();
    let created: Value = serde_json::from_str(&created).unwrap();
    wharf_tests::body_agrees("POST", LIST, 201, &created).unwrap();
    std::fs::write(shell.home().join("name.json"), r#"{"name":"file"}"#).unwrap();
    shell
        .ok(&["api", "patch", &of("raw"), "--data", "@name.json"])
        .unwrap();
    let of_stdin = ["api", "PATCH", &of("file"), "--data", "@-"];
    shell
        .run_with(&of_stdin, &[], r#"{"name":"stdin"}"#)
        .unwrap()
        .succeeded()
        .unwrap();
    assert_eq!(api.list().unwrap()[0]["name"], "stdin");
    let refused = shell
        .run(&["api", "PATCH", &of("stdin"), "--data", r#"{"n_vcpus":0}"#])
        .unwrap();
    assert_eq!(refused.code, Some(1));
    let fields: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert!(fields["n_vcpus"].is_array(), "{refused:?}");
    assert_eq!(shell.ok(&["api", "DELETE", &of("stdin")]).unwrap(), "");
    assert_eq!(
        shell.run(&["api", "GET", "api/instance/"]).unwrap().code,
        Some(2)
    );
    assert_eq!(
        shell.run(&["api", "GET", "//example.org/"]).unwrap().code,
        Some(2)
    );
    assert_eq!(
        shell
            .run(&["api", "POST", LIST, "--data", "{"])
            .unwrap()
            .code,
        Some(2)
    );
}

#[test]
fn the_operators_events_stay_the_operators() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    let name = created["name"].as_str().unwrap();
    api.wait_for(name, "running").unwrap();
    assert!(server.cli(&["events", name]).unwrap().lines().count() >= 2);
    assert!(
        server.cli(&["events"]).is_err(),
        "the operator names an instance"
    );
    assert!(server.cli(&["events", name, "--follow"]).is_err());
}

#[test]
fn an_instance_in_error_shows_the_reason() {
    let (server, _, shell) = signed_in("faults = [{ call = \"ensure\", error = \"failed\" }]");
    shell.ok(&["create", "box"]).unwrap();
    shell.ok(&["wait", "box", "--for", "error"]).unwrap();
    until_says(&server, &["events", "box"], "compute-released");
    let shown = shell.ok(&["show", "box"]).unwrap();
    let reason = shown
        .lines()
        .find(|line| line.starts_with("reason"))
        .unwrap();
    has(reason, "The host could not make the instance");
    shell.ok(&["rename", "box", "crate"]).unwrap();
    let events = shell.ok(&["events", "crate"]).unwrap();
    assert!(events.contains("is now called crate"), "{events}");
}
