//! Events for their owner: `GET /api/event/`, as pages and as streams.

mod pages;
mod resume;
mod stream;

use crate::Expected;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Request;
use wharf_tests::{Api, Server, lasting_node, roomy};

/// A message of a stream: event, id, data.
type Message = (String, u64, Value);

/// A client of a stream.
struct Stream {
    lines: std::io::Lines<BufReader<Box<dyn Read + Send>>>,
}

impl Stream {
    /// Opens a stream; `query` begins with `?`, and `last` is the `Last-Event-ID`.
    fn open(base_url: &str, key: &str, query: &str, last: Option<u64>) -> anyhow::Result<Self> {
        let credential = ("Authorization", format!("Bearer {key}"));
        Self::with(base_url, (credential.0, &credential.1), query, last)
    }

    /// Opens a stream with a header that names its user.
    fn with(
        base_url: &str,
        (header, credential): (&str, &str),
        query: &str,
        last: Option<u64>,
    ) -> anyhow::Result<Self> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_recv_body(Some(Duration::from_secs(120)))
            .build();
        let mut request = Request::get(format!("{base_url}/api/event/{query}"))
            .header(header, credential)
            .header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let answer = Agent::from(config).run(request.body(())?)?;
        let header = |name: &str| answer.headers().get(name).and_then(|v| v.to_str().ok());
        anyhow::ensure!(answer.status() == 200, "status {}", answer.status());
        anyhow::ensure!(header("content-type") == Some("text/event-stream"));
        anyhow::ensure!(header("cache-control") == Some("no-store"));
        anyhow::ensure!(header("x-request-id").is_some());
        let reader: Box<dyn Read + Send> = Box::new(answer.into_body().into_reader());
        Ok(Self {
            lines: BufReader::new(reader).lines(),
        })
    }

    fn of(server: &Server, api: &Api, query: &str) -> Self {
        Self::open(server.base_url(), api.key(), query, None).unwrap()
    }

    /// The next message; none at the end of the stream.
    fn next(&mut self) -> Option<Message> {
        let (mut event, mut id, mut data) = (String::new(), 0, Value::Null);
        loop {
            let line = self.lines.next()?.ok()?;
            match line.split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut event),
                Some(("id", text)) => id = text.parse().unwrap(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                Some(("retry", text)) => assert_eq!(text, "2000"),
                _ if line.is_empty() && !event.is_empty() => return Some((event, id, data)),
                // A comment.
                _ => assert!(line.is_empty() || line.starts_with(':'), "{line}"),
            }
        }
    }

    /// The next event.
    fn event(&mut self) -> Value {
        let (kind, id, data) = self.next().unwrap();
        assert_eq!((kind.as_str(), data["id"].as_u64()), ("event", Some(id)));
        data
    }

    /// The number of the message `ready`.
    fn ready(&mut self) -> u64 {
        let (kind, id, data) = self.next().unwrap();
        assert_eq!((kind.as_str(), data["after"].as_u64()), ("ready", Some(id)));
        id
    }
}

fn page(api: &Api, query: &str) -> Vec<Value> {
    let body = api.get(&format!("/api/event/{query}")).unwrap();
    body.is(200).as_array().unwrap().clone()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["type"].as_str().unwrap()).collect()
}

fn ids(events: &[Value]) -> Vec<u64> {
    events.iter().map(|e| e["id"].as_u64().unwrap()).collect()
}

/// Starts a server with room for many instances, which outlive it.
fn start_roomy(environment: &[(String, String)]) -> Server {
    let (node, dir) = lasting_node("one", "").unwrap();
    let server = Server::start_in(&roomy(&node), environment).unwrap();
    server.checked_at_end().keeping(dir)
}
