//! An HTTP client for the checks.

use super::check::skip;
use super::redact::redacted;
use super::watch::Watch;
use super::wire;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderMap, Request};

/// Path of the collection of instances.
pub const INSTANCES: &str = "/api/instance/";
/// Path of the volumes.
pub const VOLUMES: &str = "/api/volume/";

/// Path of the snapshots.
pub const SNAPSHOTS: &str = "/api/snapshot/";

/// Bytes; no response to these requests is larger.
const MAX_RESPONSE: u64 = 16 << 20;

/// Sends requests with one key, or none.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base_url: String,
    timeout: Duration,
    authorization: Option<String>,
    watch: Arc<Watch>,
    interrupted: Arc<AtomicBool>,
}

/// Status, headers and body of a response.
pub struct Response {
    request: String,
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as JSON; `Null` if it is not JSON.
    pub body: Value,
}

impl Client {
    /// A client without a key.
    pub fn new(
        base_url: &str,
        timeout: Duration,
        watch: Arc<Watch>,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .timeout_global(Some(timeout))
            .build();
        Self {
            agent: config.into(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            timeout,
            authorization: None,
            watch,
            interrupted,
        }
    }

    /// This client with a key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        self.with_authorization(Some(&format!("Bearer {key}")))
    }

    /// This client with a value of `Authorization`, or without the header.
    #[must_use]
    pub fn with_authorization(&self, value: Option<&str>) -> Self {
        Self {
            authorization: value.map(str::to_owned),
            ..self.clone()
        }
    }

    /// The value of `Authorization`; empty without one.
    pub fn authorization(&self) -> &str {
        self.authorization.as_deref().unwrap_or_default()
    }

    /// This client with keys that differ slightly from the right one.
    pub fn with_similar_keys(&self) -> Vec<Self> {
        let Some(right) = &self.authorization else {
            return Vec::new();
        };
        let mut other_end = right.clone();
        let end = if other_end.pop() == Some('A') {
            'B'
        } else {
            'A'
        };
        let mut shorter = right.clone();
        shorter.pop();
        [format!("{other_end}{end}"), shorter, format!("{right}A")]
            .iter()
            .map(|value| self.with_authorization(Some(value)))
            .collect()
    }

    /// This client for cleaning up: without interruption, and without checks of its responses.
    #[must_use]
    pub fn for_cleanup(&self) -> Self {
        Self {
            interrupted: Arc::default(),
            watch: Arc::default(),
            ..self.clone()
        }
    }

    /// The watch on the responses of this client.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// `GET`.
    pub fn get(&self, path: &str) -> Result<Response> {
        self.raw("GET", path, &[], None)
    }

    /// `POST` of a JSON body, or none for `Null`.
    pub fn post(&self, path: &str, body: &Value) -> Result<Response> {
        self.send("POST", path, body)
    }

    /// Any method with a JSON body, or none for `Null`.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Result<Response> {
        if body.is_null() {
            return self.raw(method, path, &[], None);
        }
        let bytes = serde_json::to_vec(body)?;
        let json = [("Content-Type", "application/json")];
        self.raw(method, path, &json, Some(&bytes))
    }

    /// One instance.
    pub fn instance(&self, selector: &str) -> Result<Response> {
        self.get(&instance_path(selector))
    }

    /// `PATCH`.
    pub fn patch(&self, selector: &str, body: &Value) -> Result<Response> {
        self.send("PATCH", &instance_path(selector), body)
    }

    /// `DELETE`.
    pub fn delete(&self, selector: &str) -> Result<Response> {
        self.raw("DELETE", &instance_path(selector), &[], None)
    }

    /// `POST …/stop/`, `…/restart/`.
    pub fn act(&self, selector: &str, action: &str) -> Result<Response> {
        self.raw("POST", &action_path(selector, action), &[], None)
    }

    /// `POST …/add-port/`, `…/remove-port/`.
    pub fn port(&self, selector: &str, action: &str, port: &Value) -> Result<Response> {
        let body = serde_json::json!({ "port": port });
        self.post(&action_path(selector, action), &body)
    }

    /// `GET …/stats/`.
    pub fn stats(&self, selector: &str) -> Result<Response> {
        self.get(&action_path(selector, "stats"))
    }

    /// All instances of the user.
    pub fn list(&self) -> Result<Vec<Value>> {
        match self.get(INSTANCES)?.expect(200)? {
            Value::Array(list) => Ok(list),
            other => bail!("the list is not an array: {}", redacted(&other)),
        }
    }

    /// Any request.
    pub fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Response> {
        ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base_url));
        if let Some(value) = &self.authorization {
            request = request.header("Authorization", value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = match body {
            Some(bytes) => self.agent.run(request.body(bytes)?),
            // Some servers require Content-Length in every POST.
            None if method == "POST" => self.agent.run(request.body(&[][..])?),
            None => self.agent.run(request.body(())?),
        };
        let request_line = format!("{method} {path}");
        let mut response = response.with_context(|| request_line.clone())?;
        let bytes = response
            .body_mut()
            .with_config()
            .limit(MAX_RESPONSE)
            .read_to_vec()
            .with_context(|| request_line.clone())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(self.record(method, path, status, headers, text))
    }

    /// Sends a request whose headers and body may be malformed. Adds the key. Skips the check if the
    /// service uses TLS, and fails if more than one response follows.
    pub fn send_malformed(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Response> {
        ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
        let Some((authority, before)) = wire::without_tls(&self.base_url) else {
            return skip("malformed requests can be sent only without TLS");
        };
        let key = self.authorization.as_ref();
        let key = key.map_or_else(String::new, |key| format!("Authorization: {key}\r\n"));
        let request = format!(
            "{method} {before}{path} HTTP/1.1\r\nConnection: close\r\n{key}{headers}\r\n{body}"
        );
        let request_line = || format!("malformed {method} {path}");
        let bytes = wire::exchange(&authority, request.as_bytes(), self.timeout);
        let reply =
            wire::single_reply(&bytes.with_context(request_line)?).with_context(request_line)?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        Ok(self.record(method, path, reply.status, reply.headers, text))
    }

    fn record(
        &self,
        method: &str,
        path: &str,
        status: u16,
        headers: HeaderMap,
        text: String,
    ) -> Response {
        let response = Response {
            request: format!("{method} {path}"),
            status,
            headers,
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        };
        self.watch.check(method, path, &response);
        response
    }
}

/// Path of one volume.
pub fn volume_path(selector: &str) -> String {
    format!("{VOLUMES}{selector}/")
}

/// Path of one snapshot.
pub fn snapshot_path(id: &str) -> String {
    format!("{SNAPSHOTS}{id}/")
}

/// Path of one instance.
pub fn instance_path(selector: &str) -> String {
    format!("{INSTANCES}{selector}/")
}

/// Path of an action on one instance.
pub fn action_path(selector: &str, action: &str) -> String {
    format!("{INSTANCES}{selector}/{action}/")
}

impl Response {
    /// Returns the body; fails unless the status is the expected one.
    pub fn expect(self, status: u16) -> Result<Value> {
        self.is(status)?;
        Ok(self.body)
    }

    /// Fails unless the status is the expected one.
    pub fn is(&self, status: u16) -> Result<()> {
        ensure!(self.status == status, "expected {status}: {self}");
        Ok(())
    }

    /// Fails unless the response is a 400 with messages for this field.
    pub fn refuses(&self, field: &str) -> Result<()> {
        self.is(400)?;
        let messages = self.body[field].as_array();
        let right = messages.is_some_and(|m| !m.is_empty() && m.iter().all(Value::is_string));
        ensure!(
            right,
            "the body has no messages for the field {field}: {self}"
        );
        Ok(())
    }

    /// The text under `detail`.
    pub fn detail(&self) -> Result<&str> {
        let detail = self.body["detail"].as_str();
        detail.with_context(|| format!("the body has no text under `detail`: {self}"))
    }

    /// One header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = match &self.body {
            Value::Null => self.text.chars().take(200).collect(),
            body => redacted(body),
        };
        write!(f, "{} returned {} {body}", self.request, self.status)
    }
}
