//! The log: one request id leads from a request to everything that is done for it.

use crate::{Expected, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use wharf_tests::{Ports, Server, simulated_node, small};

const REQUEST_ID: &str = "some-token";

#[test]
fn a_request_id_is_on_the_attempts_the_driver_calls_and_the_engine_requests() {
    let node = simulated_node("one", "");
    let settings = format!("{}{node}", Ports::take().settings());
    let server = Server::start_with_json_log(&settings)
        .unwrap()
        .checked_at_end();
    let api = server.user("ann@example.com").unwrap();
    let uuid = create(&server, api.key());
    api.wait_for(&uuid, "running").unwrap();

    let is_request = |line: &Value| {
        let access = json!({
            "request_id": REQUEST_ID, "method": "POST", "route": "/api/instance/", "status": 201,
        });
        line["target"] == "wharf::request" && contains(&line["fields"], &access)
    };
    let of_attempt = |line: &Value| {
        let attempt = &line["spans"][0];
        attempt["name"] == "attempt" && attempt["request_id"] == REQUEST_ID
    };
    let is_call = |line: &Value| {
        let call = json!({ "node": "one", "function": "ensure", "name": "call" });
        of_attempt(line)
            && line["span"]["name"] == "call"
            && contains(&line["span"], &call)
            && line["fields"]["ms"].is_u64()
    };
    let is_engine = |line: &Value| {
        let engine = &line["span"];
        of_attempt(line)
            && line["spans"][1]["function"] == "ensure"
            && engine["name"] == "engine"
            && engine["method"].is_string()
            && engine["path"]
                .as_str()
                .is_some_and(|path| path.contains(&uuid))
            && line["fields"]["status"].is_u64()
            && line["fields"]["ms"].is_u64()
    };
    wait_until("all lines are in the log", || {
        let log = server.log();
        let lines: Vec<Value> = log
            .lines()
            .filter(|line| line.contains(REQUEST_ID))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let all = lines.iter().any(is_request)
            && lines.iter().any(of_attempt)
            && lines.iter().any(is_call)
            && lines.iter().any(is_engine);
        Ok(all.then_some(()))
    });

    // Another request for the instance replaces the id.
    api.act(&uuid, "stop").is(200);
    let log = server.log();
    let is_stop = |line: &Value| line["span"]["function"] == "stop";
    let stops: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(is_stop)
        .collect();
    assert!(
        !stops.is_empty() && !stops.iter().any(of_attempt),
        "{stops:?}"
    );
}

/// Creates a container with the request id; its uuid.
fn create(server: &Server, key: &str) -> String {
    let body = small("container").to_string();
    let request = format!(
        "POST /api/instance/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         x-request-id: {REQUEST_ID}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let answer: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
    assert!(answer[0].starts_with("HTTP/1.1 201"), "{answer:?}");
    let instance: Value = serde_json::from_str(answer.last().unwrap()).unwrap();
    instance["uuid"].as_str().unwrap().to_owned()
}

/// Whether an object has all fields of another.
fn contains(object: &Value, part: &Value) -> bool {
    let mut fields = part.as_object().unwrap().iter();
    fields.all(|(name, value)| &object[name] == value)
}
