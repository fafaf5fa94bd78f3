//! `GET /metrics`, read by the parser of Prometheus' own Python client.

use crate::source;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use wharf_tests::{Api, Ports, Python, Server, simulated_node, small, until};

struct Sample {
    name: String,
    labels: Value,
    value: f64,
}

struct Scrape(Vec<Sample>);

impl Scrape {
    fn parse(text: &str) -> Self {
        let python = Python::ensure(&source("metrics/requirements.txt")).unwrap();
        let mut parser = python.program("python");
        parser.arg(source("metrics/parse.py"));
        parser.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut parser = parser.spawn().unwrap();
        let mut stdin = parser.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = parser.wait_with_output().unwrap();
        assert!(output.status.success(), "{text}");
        let samples: Vec<(String, Value, f64)> = serde_json::from_slice(&output.stdout).unwrap();
        let sample = |(name, labels, value)| Sample {
            name,
            labels,
            value,
        };
        Self(samples.into_iter().map(sample).collect())
    }

    /// The sum of the samples with these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            let same = labels
                .iter()
                .all(|(key, value)| sample.labels[key] == *value);
            sample.name == name && same
        };
        let found: Vec<f64> = self.0.iter().filter(has).map(|s| s.value).collect();
        assert!(!found.is_empty(), "{name} {labels:?} is missing");
        found.iter().sum()
    }
}

/// Sends a request, and returns the whole response.
fn get(address: &str, key: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn body(response: &str) -> &str {
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(!head.contains("chunked"), "{head}");
    body
}

#[test]
fn the_metrics_follow_the_service_and_name_no_user_or_instance() {
    let node = simulated_node("one", "");
    let settings = format!(
        "metrics_listen = \"127.0.0.1:0\"\n{}{node}",
        Ports::take().settings()
    );
    let server = Server::start(&settings).unwrap();
    let ann = server.user("ann@example.com").unwrap();
    let rest = server.base_url().strip_prefix("http://").unwrap();
    let key = |scope: &str| {
        let args = ["key", "new", "ann@example.com", "--scope", scope];
        server.cli(&args).unwrap().trim().to_owned()
    };
    let (metrics, reader) = (key("metrics"), key("read"));
    assert!(get(rest, &reader).starts_with("HTTP/1.1 403"));
    assert!(get(rest, "").starts_with("HTTP/1.1 401"));
    assert_eq!(
        Api::new(server.base_url(), &metrics)
            .get("/api/instance/")
            .unwrap()
            .status,
        403
    );

    let before = Scrape::parse(body(&get(rest, &metrics)));
    let create = [
        ("route", "/api/instance/"),
        ("method", "POST"),
        ("status", "201"),
    ];
    let created = ann
        .create(&small("container"))
        .unwrap()
        .expect(201)
        .unwrap();
    let id = created["uuid"].as_str().unwrap();
    ann.wait_for(id, "running").unwrap();
    ann.get("/api/instance/nobody/")
        .unwrap()
        .expect(404)
        .unwrap();
    server.cli(&["node", "drain", "one"]).unwrap();

    // The listener of its own needs no key, and has nothing else.
    let log = server.log();
    let line = log
        .lines()
        .find(|l| l.contains("metrics are served"))
        .unwrap();
    let own = line
        .split("address=")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    // The count of instances is ten seconds old at most.
    let after = until("an instance is counted", || {
        let scrape = Scrape::parse(body(&get(own, "")));
        let running = scrape.sum("wharf_instances", &[("state", "running")]);
        Ok((running > 0.0).then_some(scrape))
    })
    .unwrap();
    let requests = "wharf_http_request_duration_seconds_count";
    assert_eq!(after.sum(requests, &create), 1.0);
    assert_eq!(after.sum(requests, &[("status", "404")]), 1.0);
    let commits = "wharf_db_commit_duration_seconds_count";
    assert!(after.sum(commits, &[]) > before.sum(commits, &[]));
    let one = ("node", "one");
    for (name, labels, value) in [
        ("wharf_node_state", &[one, ("state", "reachable")][..], 1.0),
        ("wharf_node_state", &[one, ("state", "outage")], 0.0),
        ("wharf_node_drained", &[one], 1.0),
        ("wharf_node_capacity", &[one, ("quantity", "n_vcpus")], 16.0),
        ("wharf_node_claimed", &[one, ("quantity", "n_vcpus")], 1.0),
        (
            "wharf_node_claimed",
            &[one, ("quantity", "disk_size_gib")],
            10.0,
        ),
        ("wharf_instances", &[("state", "running")], 1.0),
        ("wharf_reconciler_pending", &[], 0.0),
        ("wharf_http_requests_in_flight", &[], 0.0),
        ("wharf_db_queue", &[], 0.0),
        ("wharf_disk_full_refusals_total", &[], 0.0),
        ("wharf_plugin_queue", &[], 0.0),
    ] {
        assert_eq!(after.sum(name, labels), value, "{name} {labels:?}");
    }
    assert_eq!(before.sum("wharf_node_drained", &[one]), 0.0);
    assert!(after.sum("wharf_reconciler_attempts_total", &[("step", "make")]) >= 1.0);
    let calls = "wharf_plugin_call_duration_seconds_count";
    assert!(after.sum(calls, &[("function", "ensure"), ("result", "ok")]) >= 1.0);
    for bytes in [
        "wharf_disk_free_bytes",
        "wharf_disk_reserve_bytes",
        "wharf_database_size_bytes",
    ] {
        assert!(after.sum(bytes, &[]) > 0.0, "{bytes}");
    }
    let values: BTreeSet<String> = after.0.iter().map(|s| s.labels.to_string()).collect();
    for name in [id, created["name"].as_str().unwrap(), "ann"] {
        assert!(!values.iter().any(|labels| labels.contains(name)), "{name}");
    }
    // The number of series is bounded, whatever clients send.
    let strange = format!("GET /{id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for request in [strange.clone(), strange.replace("GET", "WHATEVER")] {
        let mut stream = TcpStream::connect(rest).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
    }
    let last = Scrape::parse(body(&get(own, "")));
    let unknown = [("route", "-"), ("method", "other")];
    assert_eq!(last.sum(requests, &unknown), 1.0);
    assert!(!last.0.iter().any(|s| s.labels.to_string().contains(id)));
    assert!(last.sum("wharf_http_connections", &[]) >= 0.0);
    server.finish().unwrap();
}
