//! Nodes out of reach: answers at once, and starts that a node takes too late or not at all.

use crate::outage::Node;
use crate::snapshots::stopped;
use crate::{Expected, has, start_under, until_says, until_true, used, uuid};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Server, metric, small};

/// All that a refused restart leaves as it was.
fn books(server: &Server, api: &Api, id: &str) -> (Value, Value, String) {
    (
        api.instance(id).is(200),
        api.get("/api/quota/").is(200),
        server.cli(&["events", id]).unwrap(),
    )
}

/// The results of restarts in the audit log.
fn restarts(server: &Server) -> Vec<String> {
    let audit = server.cli(&["audit"]).unwrap();
    let lines = audit.lines().filter(|l| l.contains("instance.restart"));
    let results = lines.filter_map(|line| line.split('\t').next_back());
    results.map(str::to_owned).collect()
}

fn starts_with(fault: &str, limits: &str) -> (Server, Api) {
    let faults = format!("faults = [{{ call = \"start\", {fault} }}]");
    start_under(&format!("[limits]\n{limits}\n"), &faults)
}

#[test]
fn a_node_known_to_be_away_answers_at_once() {
    let slow =
        "[limits]\nobserve_every_ms = 100\nanswer_wait_ms = 30000\nstats_timeout_ms = 30000\n";
    let node = Node::start_with(slow);
    let (running, stopped) = (node.running(1), uuid(&stopped(&node.api)).to_owned());
    let id = uuid(&running);
    node.on("unreachable");
    node.listed("out of reach");
    let before = books(&node.server, &node.api, &stopped);
    let instance = node.api.instance(id).is(200);
    let begin = Instant::now();
    let refused = node.api.act(&stopped, "restart").is(502);
    assert!(refused["detail"].is_string(), "{refused}");
    let path = format!("/api/instance/{id}/");
    let resized = node.api.send("PATCH", &path, &json!({ "n_vcpus": 2 }));
    assert_eq!(resized.unwrap().status, 502);
    let stats = node.api.get(&format!("{path}stats/")).unwrap();
    assert_eq!(stats.status, 502);
    assert_eq!(books(&node.server, &node.api, &stopped), before);
    assert_eq!(node.api.instance(id).is(200), instance);
    let answer = node.api.act(id, "stop").is(200);
    // Each of the answers would wait for half a minute.
    assert!(begin.elapsed() < Duration::from_secs(29));
    assert_eq!(answer["state"], "shut_off");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("out of reach"), "{message}");
    assert_eq!(
        restarts(&node.server),
        ["refused: the node is out of reach"]
    );
    // This server is ready, whatever its nodes are.
    assert_eq!(node.api.get("/readyz").unwrap().status, 200);
    node.off("unreachable");
    until_says(&node.server, &["events", id], "compute-released");
    node.api.act(&stopped, "restart").is(200);
}

#[test]
fn a_start_that_the_engine_takes_too_late_is_undone() {
    let late = "nth = 1, error = \"late\", after_ms = 2000";
    let (server, api) = starts_with(late, "answer_wait_ms = 400");
    let id = uuid(&stopped(&api)).to_owned();
    let before = books(&server, &api, &id);
    let refused = api.act(&id, "restart").unwrap();
    refused.is(502);
    assert_eq!(used(&api, "n_vcpus"), 1, "the engine may still start it");
    assert_eq!(api.instance(&id).unwrap().body["state"], "exited");
    until_true("the compute is free again", || {
        books(&server, &api, &id) == before
    });
    let log = server.log();
    assert!(!log.contains("stopped instance is running"), "{log}");
    assert_eq!(
        restarts(&server),
        ["refused: the node did not take the start"]
    );
    api.act(&id, "restart").is(200);
    assert_eq!(restarts(&server).last().unwrap(), "running");
}

#[test]
fn requests_for_one_start_get_one_answer() {
    let (server, api) = starts_with("nth = 1, error = \"late\", after_ms = 1000", "");
    let id = uuid(&stopped(&api)).to_owned();
    let both: Vec<_> = (0..2)
        .map(|_| {
            let (api, id) = (api.clone(), id.clone());
            std::thread::spawn(move || api.act(&id, "restart"))
        })
        .collect();
    for answer in both {
        answer.join().unwrap().is(200);
    }
    assert_eq!(restarts(&server), ["running"]);
}

#[test]
fn a_start_whose_client_went_away_is_withdrawn_at_its_bound() {
    let (server, api) = starts_with("error = \"error\"", "answer_wait_ms = 700");
    let id = uuid(&stopped(&api)).to_owned();
    let before = books(&server, &api, &id);
    let address = api.base_url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/instance/{id}/restart/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        api.key()
    )
    .unwrap();
    let asked = "wharf_plugin_call_duration_seconds_count{function=\"start\"";
    until_true("the node is asked to start it", || {
        metric(&api, asked).unwrap() > 0.0
    });
    drop(stream);
    until_true("the start is withdrawn", || {
        !restarts(&server).is_empty() && books(&server, &api, &id) == before
    });
    assert_eq!(
        restarts(&server),
        ["refused: the node did not take the start"]
    );
}

#[test]
fn the_refusal_after_a_deletion_says_that_resources_are_being_freed() {
    let node = Node::start_with("[limits]\nobserve_every_ms = 100\n");
    let full = node.running(16);
    let create = || node.api.create(&small("container")).unwrap();
    let refused = || {
        let refused = create().is(422);
        refused["detail"]["message"].as_str().unwrap().to_owned()
    };
    assert!(!refused().contains("being removed"));
    node.on("unreachable");
    node.listed("out of reach");
    node.api.delete(uuid(&full)).is(204);
    has(refused(), "being removed; try again");
    node.off("unreachable");
    until_true("the resources are free", || create().status == 201);
}

#[test]
fn a_start_that_fails_until_its_deadline_is_502_and_only_the_audit_log_has_it() {
    let faults = "faults = [{ call = \"start\", error = \"error\" }]";
    let (server, api) = start_under("provisioning_deadline_s = 2\n", faults);
    let id = uuid(&stopped(&api)).to_owned();
    let events = server.cli(&["events", &id]).unwrap();
    api.act(&id, "restart").is(502);
    assert_eq!(api.instance(&id).is(200)["state"], "exited");
    assert_eq!(server.cli(&["events", &id]).unwrap(), events);
    let refused = "refused: the node did not take the start";
    assert_eq!(restarts(&server), [refused]);
}
