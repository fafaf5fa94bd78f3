//! Section 4.10: stats.

use crate::{Expected, running, start_under, uuid};
use std::path::PathBuf;
use wharf_tests::{Api, Server};

/// A server whose node has a switch that takes its engine away. Only the sampler notices.
fn sampled_once() -> (Server, Api, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let switch = format!("unreachable_while = \"{}\"", away(&dir).display());
    let limits = "[limits]\nobserve_every_ms = 3600000\nstats_every_ms = 3600000\n";
    let (server, api) = start_under(limits, &switch);
    (server, api, dir)
}

fn away(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("away")
}

#[test]
fn a_second_look_is_answered_without_the_engine() {
    let (_server, api, dir) = sampled_once();
    let created = running(&api);
    let path = format!("/api/instance/{}/stats/", uuid(&created));
    let first = api.get(&path).is(200);
    std::fs::write(away(&dir), "").unwrap();
    assert_eq!(api.get(&path).is(200), first);
    std::fs::remove_file(away(&dir)).unwrap();
}

#[test]
fn a_sample_from_before_a_restart_is_not_shown() {
    let (_server, api, dir) = sampled_once();
    let created = running(&api);
    let id = uuid(&created);
    let path = format!("/api/instance/{id}/stats/");
    api.get(&path).is(200);
    api.act(id, "stop").is(200);
    api.act(id, "restart").is(200);
    api.wait_for(id, "running").unwrap();
    std::fs::write(away(&dir), "").unwrap();
    assert_eq!(api.get(&path).unwrap().status, 502);
    std::fs::remove_file(away(&dir)).unwrap();
}
