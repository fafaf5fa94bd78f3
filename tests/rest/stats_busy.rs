//! Stats of a container on a busy engine, and on a silent one.

use crate::{running, start_under, until_true, uuid};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wharf_tests::{Answer, Api, Server, until};

/// A server with a running container, whose node has this fault and a switch that silences its engine.
struct Watched {
    _server: Server,
    api: Api,
    path: String,
    dir: TempDir,
}

impl Watched {
    fn start(fault: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let silent = dir.path().join("silent");
        let settings = format!(
            "faults = [{fault}], silent_while = \"{}\"",
            silent.display()
        );
        let limits = "[limits]\nobserve_every_ms = 500\nstats_every_ms = 50\n";
        let (server, api) = start_under(limits, &settings);
        let created = running(&api);
        let path = format!("/api/instance/{}/stats/", uuid(&created));
        Self {
            _server: server,
            api,
            path,
            dir,
        }
    }

    fn silent(&self) -> PathBuf {
        self.dir.path().join("silent")
    }

    fn look(&self) -> Answer {
        self.api.get(&self.path).unwrap()
    }
}

fn age(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("age").unwrap().parse().unwrap()
}

#[test]
fn a_busy_engine_leaves_the_newest_sample_which_is_shown_with_its_age() {
    // Each third reading takes longer than the test.
    let late = "{ call = \"stats\", every = 3, error = \"late\", after_ms = 60000 }";
    let watched = Watched::start(late);
    let first = watched.look();
    assert_eq!(age(&first), 0);
    let aged = until("a sample that is no longer fresh", || {
        let answer = watched.look();
        Ok((age(&answer) >= 5).then_some(answer))
    });
    assert_eq!(aged.unwrap().body, first.body);
}

#[test]
fn a_first_look_waits_for_a_busy_engine() {
    let late = "{ call = \"stats\", error = \"late\", after_ms = 3500 }";
    let watched = Watched::start(late);
    assert!(age(&watched.look()) < 5);
}

#[test]
fn an_engine_that_answers_nothing_for_three_seconds_is_out_of_reach() {
    let watched = Watched::start("");
    fs::write(watched.silent(), "").unwrap();
    let begin = Instant::now();
    assert_eq!(watched.look().status, 502);
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(3), "{waited:?}");
    // Far less than the time for a busy engine.
    assert!(waited < Duration::from_secs(10), "{waited:?}");

    fs::remove_file(watched.silent()).unwrap();
    let answers = |status| {
        until_true(&format!("status {status}"), || {
            watched.look().status == status
        });
    };
    answers(200);
    fs::write(watched.silent(), "").unwrap();
    answers(502);
    fs::remove_file(watched.silent()).unwrap();
    answers(200);
}
