//! The commands about buckets and backups.

use super::{LOOPBACK, PASSPHRASE, Store};
use crate::{has, start_on, wait_until};
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY};
use wharf_tests::{Shell, simulated_node};

#[test]
fn the_commands_print_documented_objects() {
    let (server, api) = start_on(LOOPBACK, &simulated_node("one", "content = true"));
    let store = Store::start();
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let source = crate::running(&api);
    let name = source["name"].as_str().unwrap();
    let add = [
        "bucket",
        "add",
        "offsite",
        "--bucket",
        BUCKET,
        "--endpoint",
        store.s3.url.as_str(),
    ];
    let short = shell.run_with(
        &[&add[..], &["-o", "json"][..]].concat(),
        &keys("short"),
        "",
    );
    let said = short.unwrap().stderr;
    has(&said, "WHARF_BUCKET_PASSPHRASE (passphrase)");
    assert!(!said.contains(SECRET_ACCESS_KEY), "{said}");
    let added = shell.run_with(&add, &keys(PASSPHRASE), "").unwrap();
    has(added.succeeded().unwrap().stdout, "offsite");
    let json = |args: &[&str], method, path: &str, status| {
        let printed = shell.json(&[&["bucket"][..], args].concat(), method, path, status);
        printed.unwrap()
    };
    json(&["ls"], "GET", "/api/bucket/", 200);
    let send = ["send", name, "offsite", "--wait"];
    let sent = json(&send, "GET", "/api/backup/id/", 200);
    assert_eq!(sent["state"], "done");
    let id = sent["id"].as_str().unwrap();
    let contents = ["contents", "--bucket", "offsite"];
    let listed = json(&contents, "GET", "/api/backup/", 200);
    assert_eq!(listed[0]["id"], id);
    let verified = json(&["verify", id, "--wait"], "GET", "/api/backup/id/", 200);
    assert!(verified["verified_at"].is_string());
    let recover = ["recover", id, "copy", "--wait"];
    let copy = json(&recover, "GET", "/api/instance/copy/", 200);
    assert_eq!(copy["n_vcpus"], source["n_vcpus"]);
    let set = [
        "plan", "set", name, "offsite", "--every", "24", "--keep", "7",
    ];
    let plan = format!("/api/instance/{name}/backup-plan/");
    let set = json(&set, "PUT", &plan, 200);
    assert_eq!(json(&["plan", "show", name], "GET", &plan, 200), set);
    for silent in [&["plan", "rm", name][..], &["discard", id]] {
        let words = [&["bucket"][..], silent, &["-o", "json"]].concat();
        assert_eq!(shell.ok(&words).unwrap(), "");
    }
    let forget = ["bucket", "forget", "offsite", "-o", "json"];
    let forgotten = wait_until("the bucket is forgotten", || Ok(shell.ok(&forget).ok()));
    assert_eq!(forgotten, "");
}

fn keys(passphrase: &str) -> [(&str, &str); 3] {
    [
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY),
        ("WHARF_BUCKET_PASSPHRASE", passphrase),
    ]
}
