//! Commands for flavors, costs, saved SSH keys, and the user.

use super::{refused, signed_in};
use crate::has;
use serde_json::json;
use wharf_tests::KeyPair;

#[test]
fn flavors_costs_and_the_user() {
    let (_server, api, shell) = signed_in("");
    let flavors = shell
        .json(&["flavors"], "GET", "/api/flavor/", 200)
        .unwrap();
    assert!(flavors.as_array().unwrap().len() > 3, "{flavors}");
    let table = shell.ok(&["flavors"]).unwrap();
    assert!(
        table.lines().any(|line| line.starts_with("base ")),
        "{table}"
    );

    shell.ok(&["create", "box", "--wait"]).unwrap();
    let usage = shell.json(&["cost"], "GET", "/api/usage/", 200).unwrap();
    assert_eq!(usage["instances"][0]["name"], "box");
    let table = shell.ok(&["cost"]).unwrap();
    assert!(
        table.contains("box ") && table.contains("Total "),
        "{table}"
    );
    let past = ["cost", "--from", "2020-01-01", "--to", "2020-02-01"];
    let past = shell.json(&past, "GET", "/api/usage/", 200).unwrap();
    assert_eq!(past["total_usd"], 0.0);
    refused(&shell, &["cost", "--from", "yesterday"], 1, "--from (from)");

    let shown = shell.ok(&["show", "box"]).unwrap();
    let hourly = usage["instances"][0]["hourly_usd"].to_string();
    let row = |name: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name}: {shown}"));
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(row("usd_per_hour"), hourly);
    // An amount below a cent is shown as its bound.
    let month = row("usd_this_month");
    assert!(month.trim_start_matches('<').parse::<f64>().unwrap() >= 0.0);
    assert_eq!(row("state"), "running");

    let who = shell
        .json(&["whoami"], "GET", "/api/session/", 200)
        .unwrap();
    assert_eq!(who["email"], "ann@example.com");
    assert_eq!(who["kind"], "key");
    assert!(shell.ok(&["whoami"]).unwrap().contains("ann@example.com"));
    assert_eq!(api.list().unwrap().len(), 1);
}

#[test]
fn saved_ssh_keys_are_listed_used_and_removed() {
    let (_server, _, shell) = signed_in("");
    let pair = KeyPair::new().unwrap();
    std::fs::write(shell.home().join("key.pub"), &pair.public).unwrap();
    let add = ["ssh-keys", "add", "laptop", "key.pub"];
    let saved = shell.json(&add, "POST", "/api/ssh-key/", 201).unwrap();
    assert_eq!(saved["name"], "laptop");
    let keys = shell.json(&["ssh-keys", "ls"], "GET", "/api/ssh-key/", 200);
    assert_eq!(keys.unwrap(), json!([saved]));
    let table = shell.ok(&["ssh-keys", "ls"]).unwrap();
    has(&table, saved["fingerprint"].as_str().unwrap());

    shell.ok(&["create", "box", "--ssh-key", "laptop"]).unwrap();
    refused(
        &shell,
        &["create", "--ssh-key", "desktop"],
        3,
        "saved are laptop",
    );
    let private = shell.home().join("key");
    std::fs::write(&private, "-----BEGIN OPENSSH PRIVATE KEY-----\n").unwrap();
    refused(
        &shell,
        &["ssh-keys", "add", "wrong", "key"],
        2,
        "is a private key",
    );

    shell.ok(&["ssh-keys", "rm", "laptop"]).unwrap();
    let keys = shell.json(&["ssh-keys", "ls"], "GET", "/api/ssh-key/", 200);
    assert_eq!(keys.unwrap(), json!([]));
}
