//! `wharf events` and `wharf bill`, with and without a running server; billing of section 3.

use crate::bill::{ANN, DISK_HOUR, HOUR, total_of};
use crate::{Expected, running, start, start_with, uuid, wait_until};
use std::time::{Duration, Instant};
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
    wait_until("the instance is purged", || {
        Ok(kinds(&server.cli(&["events", uuid(&created)])?)
            .ends_with(&["deleted", "purged"])
            .then_some(()))
    });
    server.terminate().unwrap();
    let offline = server.cli(&["events", uuid(&created)]).unwrap();
    assert!(offline.starts_with(&lines), "{offline}");
    assert!(server.cli(&["events", "nobody"]).is_err());
}

#[test]
fn only_the_operator_sees_the_reason_of_an_error() {
    let (server, api) = start_with("faults = [{ call = \"ensure\", nth = 1, error = \"failed\" }]");
    let created = api.small_container().unwrap();
    let shown = api.wait_for(uuid(&created), "error").unwrap();
    let lines = server.cli(&["events", uuid(&created)]).unwrap();
    let failed = lines.lines().find(|l| l.contains("\tfailed\t")).unwrap();
    let why = failed.split('\t').next_back().unwrap();
    assert!(
        why.len() > 3 && !shown.to_string().contains(why),
        "{failed}"
    );
    server.finish().unwrap();
}

/// Waits until the bill of a user has grown.
pub fn until_billed(server: &Server, email: &str) {
    let total = || Ok::<_, anyhow::Error>(total_of(&server.cli(&["bill", email])?));
    let before = total().unwrap();
    wait_until("the bill has grown", || {
        Ok((total()? > before).then_some(()))
    });
}

/// Checks an amount at USD per hour. Its time lies between two that a test has measured.
fn assert_billed(usd: f64, hourly: f64, [least, most]: [Duration; 2]) {
    let cost = |time: Duration| hourly / 3600.0 * time.as_secs_f64();
    // Amounts are rounded, and clocks differ.
    let expected = 0.95 * cost(least) - 1e-8..1.05 * cost(most) + 1e-8;
    assert!(expected.contains(&usd), "{usd} is not in {expected:?}");
}

#[test]
fn compute_is_billed_while_running_and_storage_while_existing() {
    let (mut server, api) = start();
    let bill = |server: &Server| server.cli(&["bill", ANN]).unwrap();
    assert_eq!(bill(&server).lines().count(), 2);
    assert_eq!(total_of(&bill(&server)), 0.0);
    // The growth of another bill shows that time passes.
    running(&server.user("bob@example.com").unwrap());
    let begin = Instant::now();
    let created = running(&api);
    let runs = Instant::now();
    until_billed(&server, ANN);
    let least = runs.elapsed();
    let before = bill(&server);
    assert_billed(total_of(&before), HOUR, [least, begin.elapsed()]);
    assert!(before.contains(uuid(&created)));
    api.act(uuid(&created), "stop").is(200);
    let begin = Instant::now();
    let stopped = total_of(&bill(&server));
    assert!(stopped >= total_of(&before) && total_of(&before) > 0.0);
    let shown = Instant::now();
    until_billed(&server, "bob@example.com");
    until_billed(&server, ANN);
    let least = shown.elapsed();
    let later = total_of(&bill(&server)) - stopped;
    // A vCPU and a GiB of RAM would cost eleven times as much as the disk.
    assert_billed(later, DISK_HOUR, [least, begin.elapsed()]);
    api.delete(uuid(&created)).is(204);
    let ended = bill(&server);
    until_billed(&server, "bob@example.com");
    assert_eq!(bill(&server), ended);
    let before = server.cli(&["bill", ANN, "--to", "2020-01-01"]);
    assert_eq!(total_of(&before.unwrap()), 0.0);
    assert!(server.cli(&["bill", "nobody@example.com"]).is_err());
    let wrong = server.cli(&["bill", ANN, "--from", "yesterday"]);
    assert!(wrong.is_err());
    server.terminate().unwrap();
    assert_eq!(bill(&server), ended);
}
