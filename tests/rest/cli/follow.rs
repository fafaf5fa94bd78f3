//! `wharf events`, and commands that run until they are ended.

use super::signed_in;
use crate::start;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStdout, Command, Stdio};
use wharf_testkit::child::KilledOnDrop;
use wharf_tests::{Shell, body_agrees};

/// A command that runs until it is dropped.
struct Following {
    _child: KilledOnDrop,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(mut command: Command) -> Self {
        let mut child = KilledOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        Self {
            _child: child,
            lines,
        }
    }

    /// The next line, which is an object.
    fn object(&mut self) -> Value {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Lines up to one whose field has this value.
    fn until(&mut self, field: &str, value: &str) -> Vec<Value> {
        let mut found = vec![self.object()];
        while found.last().unwrap()[field] != value {
            found.push(self.object());
        }
        found
    }
}

#[test]
fn events_are_shown_and_followed_across_a_restart_of_the_server() {
    let (mut server, _) = start();
    // The address stays when the server starts again.
    let config = fs::read_to_string(server.config_path()).unwrap();
    let address = server.base_url().strip_prefix("http://").unwrap();
    let config = config.replace("127.0.0.1:0", address);
    fs::write(server.config_path(), config).unwrap();
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let follow = ["events", "--follow", "--after", "0", "-o", "json"];
    let mut following = Following::start(shell.command(&follow));
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let mut seen = following.until("type", "ready");

    server.terminate().unwrap();
    server.run().unwrap();
    shell.ok(&["rm", "--yes", "box"]).unwrap();
    seen.extend(following.until("type", "deleted"));
    let ids: Vec<_> = seen
        .iter()
        .map(|event| event["id"].as_u64().unwrap())
        .collect();
    let expected: Vec<_> = (1..=ids.len() as u64).collect();
    assert_eq!(ids, expected, "each event once, in order");

    let page = shell.json(&["events"], "GET", "/api/event/", 200).unwrap();
    assert_eq!(page.as_array().unwrap()[..seen.len()], seen[..]);
    let last = ["events", "--after", &(seen.len() - 1).to_string()];
    let last = shell.json(&last, "GET", "/api/event/", 200).unwrap();
    assert_eq!(last[0]["id"], seen.len());
    let text = shell.ok(&["events"]).unwrap();
    assert_eq!(text.lines().count(), page.as_array().unwrap().len());
    assert!(text.lines().all(|line| line.contains("  box  ")), "{text}");
    drop(following);
}

#[test]
fn stats_are_watched_one_object_in_each_line() {
    let (_server, _, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let watch = ["stats", "box", "--watch", "-o", "json"];
    let mut watching = Following::start(shell.command(&watch));
    for _ in 0..2 {
        let stats = watching.object();
        body_agrees("GET", "/api/instance/box/stats/", 200, &stats).unwrap();
    }
    drop(watching);
}
