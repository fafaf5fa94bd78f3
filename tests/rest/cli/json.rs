//! `-o json` of every command prints the documented body of a response, or nothing.

use crate::start_with;
use serde_json::Value;
use std::collections::BTreeSet;
use wharf_tests::{KeyPair, Shell};

/// The commands in an order in which they succeed: each with its arguments, and the response whose body it
/// prints.
const RUNS: [&str; 38] = [
    "volume create | genome --size 5 | GET /api/volume/id/ 200",
    "volume share | genome bob@example.com | POST /api/volume/genome/share/ 201",
    "create | box --wait | GET /api/instance/box/ 200",
    "ls | | GET /api/instance/ 200",
    "volume ls | | GET /api/volume/ 200",
    "volume show | genome | GET /api/volume/genome/ 200",
    "attach | box genome:/data | POST /api/instance/box/attach-volume/ 200",
    "detach | box genome | POST /api/instance/box/detach-volume/ 200",
    "volume rename | genome reference | PATCH /api/volume/reference/ 200",
    "show | box | GET /api/instance/box/ 200",
    "wait | box --for running | GET /api/instance/box/ 200",
    "stats | box | GET /api/instance/box/stats/ 200",
    "resize | box --vcpus 2 | PATCH /api/instance/box/ 200",
    "rename | box crate | PATCH /api/instance/crate/ 200",
    "snapshot create | crate --name before | GET /api/snapshot/id/ 200",
    "snapshot ls | crate | GET /api/snapshot/ 200",
    "snapshot show | crate/before | GET /api/snapshot/id/ 200",
    "snapshot clone | crate/before copy --wait | GET /api/instance/copy/ 200",
    "snapshot plan set | crate --every 24 --keep 7 | PUT /api/instance/crate/snapshot-plan/ 200",
    "snapshot plan show | crate | GET /api/instance/crate/snapshot-plan/ 200",
    "stop | crate | POST /api/instance/crate/stop/ 200",
    "snapshot restore | crate/before --yes | GET /api/instance/crate/ 200",
    "restart | crate | POST /api/instance/crate/restart/ 200",
    "events | | GET /api/event/ 200",
    "cost | | GET /api/usage/ 200",
    "flavors | | GET /api/flavor/ 200",
    "quota | | GET /api/quota/ 200",
    "preferences | | GET /api/preferences/ 200",
    "preferences | --allow-moves true | PATCH /api/preferences/ 200",
    "whoami | | GET /api/session/ 200",
    "keys create | ci | POST /api/key/ 201",
    "keys ls | | GET /api/key/ 200",
    "ssh-keys add | laptop key.pub | POST /api/ssh-key/ 201",
    "ssh-keys ls | | GET /api/ssh-key/ 200",
    "create | machine --type vm | POST /api/instance/ 201",
    "port add | machine 443 | POST /api/instance/machine/add-port/ 200",
    "port rm | machine 443 | POST /api/instance/machine/remove-port/ 200",
    "api | GET /api/offer/ | GET /api/offer/ 200",
];

/// The commands without a result, in an order in which they succeed. The others are for terminals,
/// `recreate` is for instances that are lost, shares need pages by name, and `backups/commands.rs` has those of buckets.
const SILENT: [(&str, &[&str]); 6] = [
    ("volume unshare", &["reference", "bob@example.com"]),
    ("volume rm", &["--yes", "reference"]),
    ("ssh-keys rm", &["laptop"]),
    ("snapshot plan rm", &["crate"]),
    ("snapshot rm", &["--yes", "crate/before"]),
    ("rm", &["--yes", "crate", "copy", "machine"]),
];
const OTHERS: [&str; 25] = [
    "bucket add",
    "bucket contents",
    "bucket discard",
    "bucket forget",
    "bucket ls",
    "bucket plan rm",
    "bucket plan set",
    "bucket plan show",
    "bucket recover",
    "bucket send",
    "bucket verify",
    "completions",
    "config-ssh",
    "console",
    "forward",
    "keys rm",
    "login",
    "logout",
    "open",
    "recreate",
    "share add",
    "share ls",
    "share rm",
    "ssh",
    "tunnel",
];

/// The names of the commands that a help lists after a line.
fn listed(help: &str, after: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != after).skip(1);
    let commands = lines.take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// All commands for users, with those below others.
fn commands(shell: &Shell) -> BTreeSet<String> {
    let mut open = listed(&shell.ok(&["--help"]).unwrap(), "Commands for users:");
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        let words: Vec<_> = name.split(' ').chain(["--help"]).collect();
        let below = listed(&shell.ok(&words).unwrap(), "Commands:");
        open.extend(below.iter().map(|sub| format!("{name} {sub}")));
        if below.is_empty() {
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_command_prints_a_documented_object() {
    let (server, _) = start_with("late_attach = true");
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let runs = RUNS.map(|run| {
        let parts: Vec<_> = run.split('|').map(str::trim).collect();
        let [name, arguments, response] = parts[..] else {
            panic!("{run}")
        };
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        (name, arguments, response)
    });
    let tested = runs.iter().map(|(name, ..)| *name);
    let tested = tested.chain(SILENT.iter().map(|(name, _)| *name));
    let tested: BTreeSet<_> = tested.chain(OTHERS).map(str::to_owned).collect();
    assert_eq!(commands(&shell), tested);
    let pair = KeyPair::new().unwrap();
    std::fs::write(shell.home().join("key.pub"), &pair.public).unwrap();
    let words = |name: &'static str, arguments: &[&'static str]| {
        let words = name.split(' ').chain(arguments.iter().copied());
        words.collect::<Vec<_>>()
    };
    let mut key = Value::Null;
    for &(name, ref arguments, response) in &runs {
        let mut response = response.split(' ');
        let [method, path, status] = [(); 3].map(|()| response.next().unwrap());
        let status = status.parse().unwrap();
        let printed = shell.json(&words(name, arguments), method, path, status);
        let printed = printed.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        if name == "keys create" {
            key = printed["id"].clone();
        }
    }
    let revoke = ["keys", "rm", key.as_str().unwrap(), "-o", "json"];
    assert_eq!(shell.ok(&revoke).unwrap(), "");
    for (name, arguments) in SILENT {
        let words = [&words(name, arguments)[..], &["-o", "json"]].concat();
        assert_eq!(shell.ok(&words).unwrap(), "", "{name}");
    }
}
