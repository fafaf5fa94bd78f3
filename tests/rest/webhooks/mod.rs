//! `/api/webhook/`: a receiver on loopback gets the events of its user.

mod crash;
mod deliveries;
mod failures;
mod places;
mod refusals;
mod tls;

use crate::{Expected, start_under, wait_until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use wharf_tests::{Api, Server};

/// The settings that let webhooks reach a receiver on loopback.
pub const LOOPBACK: &str = "[webhook]\nhttp = true\nallow = [\"127.0.0.0/8\", \"::1/128\"]\n";

/// Starts a server that permits receivers on loopback, and creates a user.
fn start() -> (Server, Api) {
    start_with(LOOPBACK)
}

fn start_with(webhook: &str) -> (Server, Api) {
    start_under(webhook, "")
}

/// A request to a receiver.
#[derive(Debug, Clone)]
pub struct Delivered {
    pub headers: BTreeMap<String, String>,
    body: String,
}

impl Delivered {
    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn event(&self) -> Value {
        self.json()["data"].clone()
    }

    /// Whether a secret has signed it, as a Python program with the standard library sees it.
    fn is_signed_by(&self, secret: &Value) -> bool {
        const VERIFY: &str = r#"
import base64, hashlib, hmac, json, sys
given = json.load(sys.stdin)
key = base64.b64decode(given["secret"].removeprefix("whsec_"))
text = "{}.{}.{}".format(given["id"], given["timestamp"], given["body"])
mac = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
print("v1," + mac in given["signatures"].split())
"#;
        let given = json!({
            "secret": secret,
            "id": self.id(),
            "timestamp": self.headers["webhook-timestamp"],
            "signatures": self.headers["webhook-signature"],
            "body": self.body,
        });
        let mut python = Command::new("python3")
            .args(["-c", VERIFY])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = python.stdin.take().unwrap();
        stdin.write_all(given.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success());
        match String::from_utf8(output.stdout).unwrap().trim() {
            "True" => true,
            "False" => false,
            other => panic!("{other}"),
        }
    }
}

/// An HTTP server on loopback, which runs until the tests end.
#[derive(Clone)]
pub struct Receiver {
    url: String,
    requests: Arc<Mutex<Vec<Delivered>>>,
    answers: mpsc::Sender<String>,
}

impl Receiver {
    /// A receiver that answers 204 to all requests.
    pub fn start() -> Self {
        Self::with("204", None)
    }

    /// A receiver that waits for [`Self::answer`] at each request.
    fn gated() -> Self {
        let (answers, given) = mpsc::channel();
        let mut receiver = Self::with("204", Some(given));
        receiver.answers = answers;
        receiver
    }

    /// A receiver with this status line and header lines in its answers.
    fn with(answer: &str, gate: Option<mpsc::Receiver<String>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Self {
            url: format!("http://{}/hook", listener.local_addr().unwrap()),
            requests: Arc::default(),
            answers: mpsc::channel().0,
        };
        let (requests, answer) = (Arc::clone(&receiver.requests), answer.to_owned());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                // A server that is killed breaks its connection off.
                let _ = serve(&connection.unwrap(), &requests, &answer, gate.as_ref());
            }
        });
        receiver
    }

    fn answer(&self, status: &str) {
        self.answers.send(status.to_owned()).unwrap();
    }

    fn requests(&self) -> Vec<Delivered> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits for this number of requests.
    pub fn wait(&self, count: usize) -> Vec<Delivered> {
        wait_until(&format!("{count} requests"), || {
            let requests = self.requests();
            Ok((requests.len() >= count).then_some(requests))
        })
    }

    /// Waits for the events with these numbers, and returns all others too.
    fn wait_for(&self, ids: &[Value]) -> Vec<Delivered> {
        let wanted: BTreeSet<u64> = ids.iter().map(|id| id.as_u64().unwrap()).collect();
        wait_until("all events are delivered", || {
            let requests = self.requests();
            let ids = requests.iter().map(|r| r.event()["id"].as_u64().unwrap());
            let found: BTreeSet<u64> = ids.collect();
            Ok(wanted.is_subset(&found).then_some(requests))
        })
    }
}

fn serve(
    mut connection: &TcpStream,
    requests: &Mutex<Vec<Delivered>>,
    answer: &str,
    gate: Option<&mpsc::Receiver<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    assert!(
        line.is_empty() || line.starts_with("POST /hook HTTP/1.1"),
        "{line}"
    );
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let Some(length) = headers.get("content-length") else {
        return Ok(());
    };
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    requests.lock().unwrap().push(Delivered { headers, body });
    let gated = gate.and_then(|gate| gate.recv().ok());
    let answer = gated.as_deref().unwrap_or(answer);
    // A body without an end, which a sender must not wait for.
    let body = "x".repeat(1 << 16);
    write!(
        connection,
        "HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Creates a webhook. Returns its path and its secret.
pub fn create(api: &Api, receiver: &Receiver, types: &[&str]) -> (String, Value) {
    let body = json!({ "url": receiver.url, "types": types });
    let webhook = api.send("POST", "/api/webhook/", &body).is(201);
    let id = webhook["id"].as_str().unwrap();
    (format!("/api/webhook/{id}/"), webhook["secret"].clone())
}

fn post(api: &Api, path: &str, status: u16) -> Value {
    let answer = api.send("POST", path, &Value::Null).unwrap();
    answer.expect(status).unwrap()
}

fn get(api: &Api, path: &str) -> Value {
    api.get(path).is(200)
}

/// The deliveries of a webhook, the last one first.
fn deliveries(api: &Api, webhook: &str) -> Vec<Value> {
    let found = get(api, &format!("{webhook}delivery/"));
    found.as_array().unwrap().clone()
}

/// Waits until the latest delivery of a webhook is as `wanted`.
fn until_delivery(api: &Api, webhook: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    wait_until("the delivery is as expected", || {
        let latest = deliveries(api, webhook).into_iter().next();
        Ok(latest.filter(&wanted))
    })
}

/// All events of a user.
fn events(api: &Api) -> Vec<Value> {
    let found = get(api, "/api/event/?limit=1000");
    found.as_array().unwrap().clone()
}

fn ids(events: &[Value]) -> Vec<Value> {
    events.iter().map(|event| event["id"].clone()).collect()
}
