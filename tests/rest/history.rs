//! `wharf events` and `wharf bill`, with and without a running server; billing of section 3.

use crate::bill::total_of;
use crate::{start, start_with, uuid};
use std::time::Duration;

fn kinds(lines: &str) -> Vec<&str> {
    lines
        .lines()
        .map(|line| line.split('\t').nth(1).unwrap())
        .collect()
}

#[test]
fn the_event_log_outlives_the_instance() {
    let (mut server, api) = start();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    api.act(uuid(&created), "restart")
        .unwrap()
        .expect(200)
        .unwrap();
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
    api.delete(name).unwrap().expect(204).unwrap();
    assert!(server.cli(&["events", name]).is_err());
    wharf_tests::until("the instance is purged", || {
        Ok(kinds(&server.cli(&["events", uuid(&created)])?)
            .ends_with(&["deleted", "purged"])
            .then_some(()))
    })
    .unwrap();
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

#[test]
fn compute_is_billed_while_running_storage_while_existing_and_errors_never() {
    let (mut server, api) = start();
    let bill = |server: &wharf_tests::Server| server.cli(&["bill", "ann@example.com"]).unwrap();
    assert_eq!(bill(&server).lines().count(), 2);
    assert_eq!(total_of(&bill(&server)), 0.0);
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let running = bill(&server);
    assert!(running.contains(uuid(&created)));
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let stopped = total_of(&bill(&server));
    assert!(stopped >= total_of(&running) && total_of(&running) > 0.0);
    std::thread::sleep(Duration::from_millis(500));
    // A vCPU and a GiB of RAM cost 0.016 per hour, ten GiB of disk 0.0014.
    let later = total_of(&bill(&server)) - stopped;
    assert!(later > 0.0 && later < 0.0014 / 3600.0 * 60.0, "{later}");
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    let ended = bill(&server);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(bill(&server), ended);
    let before = server.cli(&["bill", "ann@example.com", "--to", "2020-01-01"]);
    assert_eq!(total_of(&before.unwrap()), 0.0);
    assert!(server.cli(&["bill", "nobody@example.com"]).is_err());
    assert!(
        server
            .cli(&["bill", "ann@example.com", "--from", "yesterday"])
            .is_err()
    );
    server.terminate().unwrap();
    assert_eq!(bill(&server), ended);
}
