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
mod simulated;
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

/// Fails unless a text has this part.
#[track_caller]
fn has(text: impl AsRef<str>, part: impl AsRef<str>) {
    let (text, part) = (text.as_ref(), part.as_ref());
    assert!(text.contains(part), "{part} is not in: {text}");
}

/// Polls until there is a value.
#[track_caller]
fn wait_until<T>(what: &str, poll: impl FnMut() -> anyhow::Result<Option<T>>) -> T {
    until(what, poll).unwrap()
}

/// Waits until a command of the operator prints these words.
fn until_says(server: &Server, args: &[&str], words: &str) {
    let says = || Ok(server.cli(args)?.contains(words).then_some(()));
    until(&format!("{args:?} prints {words}"), says).unwrap();
}

/// Waits until the log has these words.
fn until_logged(server: &Server, words: &str) {
    let logged = || Ok(server.written().contains(words).then_some(()));
    until(&format!("the log has: {words}"), logged).unwrap();
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
    let server = Server::start(&format!("{top}{ports}{nodes}")).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

/// Does what [`start_with`] does, on an engine whose instances outlive the server.
fn start_lasting(settings: &str) -> (Server, Api, tempfile::TempDir) {
    let (node, dir) = lasting_node("one", settings).unwrap();
    let (server, api) = start_on("", &node);
    (server, api, dir)
}

/// Creates the smallest container, and waits until it runs.
fn running(api: &Api) -> Value {
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap()
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap()
}
