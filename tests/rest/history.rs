//! `wharf events` and `wharf bill`, with and without a running server; billing of section 3.

use crate::bill::{ANN, total_of};
use crate::{Expected, running, start, until_true, uuid};
use wharf_tests::Server;

fn kinds(lines: &str) -> Vec<&str> {
    lines
        .lines()
        .map(|line| line.split('\t').nth(1).unwrap())
        .collect()
}

#[test]
fn the_event_log_outlives_the_instance() {
    let (mut server, api) = start();
    let created = running(&api);
    api.act(uuid(&created), "stop").is(200);
    api.act(uuid(&created), "restart").is(200);
    let name = created["name"].as_str().unwrap();
    let lines = server.cli(&["events", name]).unwrap();
    assert_eq!(
        kinds(&lines),
        [
            "created",
            "ready",
            "stopped",
            "compute-released",
            "restarted",
            "ready"
        ]
    );
    api.delete(name).is(204);
    assert!(server.cli(&["events", name]).is_err());
    until_true("the instance is purged", || {
        kinds(&server.cli(&["events", uuid(&created)]).unwrap()).ends_with(&["deleted", "purged"])
    });
    server.terminate().unwrap();
    let offline = server.cli(&["events", uuid(&created)]).unwrap();
    assert!(offline.starts_with(&lines), "{offline}");
    assert!(server.cli(&["events", "nobody"]).is_err());
}

/// Waits until the bill of a user has grown.
pub fn until_billed(server: &Server, email: &str) {
    let total = || Ok::<_, anyhow::Error>(total_of(&server.cli(&["bill", email])?));
    let before = total().unwrap();
    until_true("the bill has grown", || total().unwrap() > before);
}

#[test]
fn a_bill_is_empty_before_its_first_instance_and_ends_with_its_last() {
    let (mut server, api) = start();
    let bill = |server: &Server| server.cli(&["bill", ANN]).unwrap();
    assert_eq!(bill(&server).lines().count(), 2);
    assert_eq!(total_of(&bill(&server)), 0.0);
    // The growth of another bill shows that time passes.
    running(&server.user("bob@example.com").unwrap());
    let created = running(&api);
    until_billed(&server, ANN);
    assert!(bill(&server).contains(uuid(&created)));
    api.delete(uuid(&created)).is(204);
    let ended = bill(&server);
    until_billed(&server, "bob@example.com");
    assert_eq!(bill(&server), ended);
    let before = server.cli(&["bill", ANN, "--to", "2020-01-01"]);
    assert_eq!(total_of(&before.unwrap()), 0.0);
    let wrong = server.cli(&["bill", ANN, "--from", "yesterday"]);
    assert!(wrong.is_err());
    server.terminate().unwrap();
    assert_eq!(bill(&server), ended);
}
