//! The REST interface of a real server with the simulated engine. Each endpoint or concern has a
//! file; the name of a test states the rule.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod addresses;
mod audit;
mod away;
mod backup;
mod backups;
mod bill;
mod catalogue;
mod check;
mod cli;
mod clients;
mod compiled;
mod compression;
mod configuration;
mod damage;
mod data_dir;
mod database;
mod device;
mod disk;
mod drain;
mod events;
mod faults;
mod formats;
mod fsck;
mod held;
mod history;
mod hygiene;
mod idempotency;
mod keeping;
mod kept;
mod keys;
mod limits;
mod lost;
mod moves;
mod oidc;
mod outage;
mod own_flavors;
mod pages;
mod passkeys;
mod placement;
mod plugins;
mod private_ports;
mod quota;
mod races;
mod rate;
mod recovery;
mod registries;
mod reload;
mod request_files;
mod resize;
mod retention;
mod retired;
mod rush;
mod scopes;
mod secrets;
mod short_node;
mod sign_in;
mod snapshots;
mod ssh_keys;
mod stats;
mod stats_busy;
mod suspend;
mod system_clock;
mod terminal;
mod tls;
mod tracing;
mod transport;
mod trust;
mod tunnel;
mod unreachable;
mod usage;
mod volumes;
mod webhooks;

use serde_json::Value;
use std::fmt::Display;
use std::process::Command;
use wharf_tests::{Answer, Api, Ports, Server, lasting_node, simulated_node, small, until};

/// The body of an answer whose status a test expects.
trait Expected {
    fn is(self, status: u16) -> Value;
}

impl Expected for anyhow::Result<Answer> {
    #[track_caller]
    fn is(self, status: u16) -> Value {
        self.unwrap().is(status)
    }
}

impl Expected for Answer {
    #[track_caller]
    fn is(self, status: u16) -> Value {
        self.expect(status).unwrap()
    }
}

/// Fails unless a text, or a value as JSON, has this part.
#[track_caller]
fn has(text: impl Display, part: impl AsRef<str>) {
    let (text, part) = (text.to_string(), part.as_ref());
    assert!(text.contains(part), "{part} is not in: {text}");
}

/// Polls until there is a value.
#[track_caller]
fn wait_until<T>(what: &str, poll: impl FnMut() -> anyhow::Result<Option<T>>) -> T {
    until(what, poll).unwrap()
}

/// Waits until a condition holds.
#[track_caller]
fn until_true(what: &str, mut holds: impl FnMut() -> bool) {
    wait_until(what, || Ok(holds().then_some(())));
}

/// Waits until a command of the operator prints these words.
fn until_says(server: &Server, args: &[&str], words: &str) {
    until_true(&format!("{args:?} prints {words}"), || {
        server.cli(args).unwrap().contains(words)
    });
}

/// Waits until the log has these words.
fn until_logged(server: &Server, words: &str) {
    until_true(&format!("the log has: {words}"), || {
        server.written().contains(words)
    });
}

/// The rows of a list, page by page.
fn walk(api: &Api, first: &str) -> Vec<Value> {
    let (mut rows, mut path) = (Vec::new(), Some(first.to_owned()));
    while let Some(next) = path {
        let page = api.get(&next).unwrap();
        path = page.header("link").map(|link| {
            let (target, _) = link.split_once('>').unwrap();
            target.trim_start_matches('<').to_owned()
        });
        rows.extend(page.is(200).as_array().unwrap().clone());
    }
    rows
}

/// The caller's records of an operation in the audit log.
fn recorded(api: &Api, operation: &str) -> Vec<Value> {
    let mut records = walk(api, "/api/audit/?limit=500");
    records.retain(|record| record["operation"] == operation);
    records
}

/// A time as requests have it, in the words of the program `date`.
fn time(words: &str) -> String {
    let mut date = Command::new("date");
    let date = date.args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ", "-d", words]);
    let printed = String::from_utf8(date.output().unwrap().stdout).unwrap();
    printed.trim().to_owned()
}

/// The milliseconds from 1970 to a time.
fn millis(time: &Value) -> i64 {
    let mut date = Command::new("date");
    let date = date.args(["+%s%3N", "-d", time.as_str().unwrap()]);
    let printed = String::from_utf8(date.output().unwrap().stdout).unwrap();
    printed.trim().parse().unwrap()
}

/// The usage of one quantity of the caller's quota.
fn used(api: &Api, field: &str) -> u64 {
    let quota = api.get("/api/quota/").is(200);
    quota[field]["used"].as_u64().unwrap()
}

/// Waits until the caller uses so much of one quantity.
fn until_used(api: &Api, field: &str, amount: u64) {
    until_true(&format!("{field} used: {amount}"), || {
        used(api, field) == amount
    });
}

/// Fails if the log or a file of the server has one of these texts.
#[track_caller]
fn stores_none(server: &Server, secrets: &[&str]) {
    let wrote = server.data_and_log().unwrap();
    for (n, secret) in secrets.iter().enumerate() {
        let found = wrote.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(!found, "secret {n} is in the log or the data directory");
    }
}

/// Replaces a text in the configuration.
#[track_caller]
fn edit(server: &Server, from: &str, to: &str) {
    let text = std::fs::read_to_string(server.config_path()).unwrap();
    assert!(text.contains(from), "{from} is not in: {text}");
    std::fs::write(server.config_path(), text.replacen(from, to, 1)).unwrap();
}

/// Kills the server and starts it again. Returns a client of the user.
fn kill(server: &mut Server, api: &Api) -> Api {
    server.kill().unwrap();
    server.run().unwrap();
    server.again(api)
}

/// The smallest request with fields added or replaced.
fn with(kind: &str, fields: Value) -> Value {
    let mut body = small(kind);
    let Value::Object(fields) = fields else {
        panic!("{fields}");
    };
    body.as_object_mut().unwrap().extend(fields);
    body
}

/// Starts a server with these settings. Its log and its database are checked at the end of the test.
fn serve(settings: &str) -> Server {
    Server::start(settings).unwrap().checked_at_end()
}

/// Starts a server with one simulated node, and creates a user.
fn start() -> (Server, Api) {
    start_with("")
}

/// Starts a server whose simulated node has these settings.
fn start_with(settings: &str) -> (Server, Api) {
    start_under("", settings)
}

/// Does what [`start_with`] does, with more settings of the server.
fn start_under(top: &str, settings: &str) -> (Server, Api) {
    start_on(top, &simulated_node("one", settings))
}

/// Does what [`start_under`] does, on these nodes.
fn start_on(top: &str, nodes: &str) -> (Server, Api) {
    let ports = Ports::take().settings();
    let server = serve(&format!("{top}{ports}{nodes}"));
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

/// Does what [`start_with`] does, on an engine whose instances outlive the server.
fn start_lasting(settings: &str) -> (Server, Api) {
    let (node, dir) = lasting_node("one", settings).unwrap();
    let (server, api) = start_on("", &node);
    (server.keeping(dir), api)
}

/// Creates an instance, and waits until it runs.
#[track_caller]
fn made(api: &Api, body: &Value) -> Value {
    let created = api.create(body).is(201);
    api.wait_for(uuid(&created), "running").unwrap()
}

/// Creates the smallest container, and waits until it runs.
fn running(api: &Api) -> Value {
    made(api, &small("container"))
}

/// A port at which nothing listens.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap()
}
