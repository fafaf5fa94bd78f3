//! Commands for operators: wrong arguments are named, and the configuration has a default.

use crate::{has, start};
use serde_json::Value;
use wharf_tests::Shell;

#[test]
fn a_wrong_argument_is_named() {
    let (mut server, api) = start();
    api.small_container().unwrap();
    let wrong = [
        (&["key", "revoke", "99"][..], "\"99\""),
        (&["bill", "nobody@example.com"], "\"nobody@example.com\""),
        (
            &["bill", "ann@example.com", "--from", "2099-01-01"],
            "from: must not be after 20",
        ),
        (
            &["bill", "correct", "nobox", "1", "--reason", "x"],
            "\"nobox\"",
        ),
        (
            &["user", "limit", "nobody@example.com", "--vcpus", "1"],
            "\"nobody@example.com\"",
        ),
        (
            &["user", "disable", "nobody@example.com"],
            "\"nobody@example.com\"",
        ),
        (
            &["user", "enable", "nobody@example.com"],
            "\"nobody@example.com\"",
        ),
        (&["events", "nobox"], "\"nobox\""),
        (
            &["events", "00000000-0000-4000-8000-000000000000"],
            "UUID 00000000-",
        ),
        (&["forget", "nobox"], "\"nobox\""),
        (&["suspend", "nobox", "--reason", "x"], "\"nobox\""),
        (
            &["suspend", "--user", "nobody@example.com", "--reason", "x"],
            "\"nobody@example.com\"",
        ),
        (&["resume", "nobox"], "\"nobox\""),
        (
            &["resume", "--user", "nobody@example.com"],
            "\"nobody@example.com\"",
        ),
        (&["node", "drain", "three"], "\"three\""),
        (&["node", "accept", "three"], "\"three\""),
        (
            &["audit", "--user", "nobody@example.com"],
            "\"nobody@example.com\"",
        ),
        (
            &["audit", "verify", "--end", "7"],
            "end: must be NUMBER:HASH",
        ),
        (&["backup", "/nowhere/at/all"], "/nowhere/at/all"),
    ];
    for running in [true, false] {
        for (args, named) in wrong {
            let error = server.cli(args).unwrap_err().to_string();
            assert!(error.contains(named), "{running} {args:?}: {error}");
        }
        if running {
            server.terminate().unwrap();
        }
    }
    let restore = server.cli(&["restore", "/nowhere/at/all"]).unwrap_err();
    assert!(restore.to_string().contains("wharf.redb"), "{restore}");
}

#[test]
fn the_configuration_is_that_of_the_environment_or_the_default() {
    let (server, _) = start();
    let shell = Shell::new().unwrap();
    let config = server.config_path();
    let named = [("WHARF_CONFIG", config.to_str().unwrap())];
    let listed = shell.run_with(&["user", "list"], &named, "").unwrap();
    assert!(listed.stdout.contains("ann@example.com"), "{listed:?}");
    let audit = shell.run_with(&["audit", "list"], &named, "").unwrap();
    assert!(audit.stdout.contains("key.new"), "{audit:?}");
    // The option comes before the variable.
    let elsewhere = [("WHARF_CONFIG", "/nowhere/wharf.toml")];
    let args = ["user", "list", "--config", config.to_str().unwrap()];
    assert_eq!(shell.run_with(&args, &elsewhere, "").unwrap().code, Some(0));
    // It also comes after a subcommand.
    let args = [
        "images",
        "build",
        "base",
        "--config",
        config.to_str().unwrap(),
    ];
    let images = shell.run_with(&args, &elsewhere, "").unwrap();
    has(
        &images.stderr,
        "no node of the configuration has the driver docker",
    );
    let missing = shell.run_with(&["user", "list"], &elsewhere, "").unwrap();
    assert_eq!(missing.code, Some(1));
    for words in ["/nowhere/wharf.toml", "--config FILE", "WHARF_CONFIG"] {
        assert!(missing.stderr.contains(words), "{missing:?}");
    }
    if !std::path::Path::new("/etc/wharf/wharf.toml").exists() {
        let default = shell.run(&["user", "list"]).unwrap();
        has(&default.stderr, "/etc/wharf/wharf.toml");
    }
}

#[test]
fn replies_are_json_for_programs() {
    let (mut server, api) = start();
    let made = api.small_container().unwrap();
    let (name, uuid) = (
        made["name"].as_str().unwrap(),
        made["uuid"].as_str().unwrap(),
    );
    for running in [true, false] {
        let printed = |args: &[&str]| server.cli(&[args, &["-o", "json"]].concat()).unwrap();
        let json = |args: &[&str]| -> Value { serde_json::from_str(&printed(args)).unwrap() };
        let nodes = json(&["node", "list"]);
        assert_eq!(nodes[0]["name"], "one");
        assert!(nodes[0]["used"]["n_vcpus"].is_u64(), "{nodes}");
        let keys = json(&["key", "list"]);
        let made = keys[0]["created_at"].as_str().unwrap();
        assert!(made.starts_with("20") && made.ends_with('Z'), "{keys}");
        assert_eq!(keys[0]["expires_at"], Value::Null);
        assert!(json(&["clock", "show"])["now"].is_string());
        assert_eq!(json(&["user", "list"])[0]["email"], "ann@example.com");
        assert!(json(&["key", "list"])[0]["scopes"].is_array());
        assert!(json(&["key", "new", "bob@example.com"])["key"].is_string());
        assert_eq!(json(&["bill", "ann@example.com"])["lines"][0]["uuid"], uuid);
        assert_eq!(json(&["events", name])[0]["what"], "created");
        assert_eq!(json(&["clock", "show"])["refused"], false);
        let suspend = json(&["suspend", name, "--reason", "unpaid"]);
        assert_eq!(suspend[0], uuid);
        assert_eq!(json(&["suspend"])[0]["reason"], "unpaid");
        assert_eq!(json(&["resume", name])[0], uuid);
        assert_eq!(
            json(&["audit", "verify"])["wrong"],
            Value::Array(Vec::new())
        );
        // A log is read in parts, so each record is a line.
        let audit = printed(&["audit"]);
        let first: Value = serde_json::from_str(audit.lines().next().unwrap()).unwrap();
        assert_eq!(first["operation"], "key.new", "{first}");
        // A command without a result prints nothing.
        assert_eq!(printed(&["user", "disable", "bob@example.com"]), "");
        assert_eq!(printed(&["user", "enable", "bob@example.com"]), "");
        if running {
            server.terminate().unwrap();
        }
    }
}
