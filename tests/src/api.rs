//! A client of the REST interface.

use crate::document;
use crate::wait::until;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderMap, Request};

/// A client with the key of one user.
#[derive(Clone)]
pub struct Api {
    agent: Agent,
    base_url: String,
    key: String,
}

/// Status, headers and body of a response.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body, `Null` if there was none.
    pub body: Value,
}

impl Answer {
    /// Returns the body; fails unless the status is the expected one.
    pub fn expect(self, status: u16) -> Result<Value> {
        ensure!(
            self.status == status,
            "expected {status}, got {}: {}",
            self.status,
            self.body
        );
        Ok(self.body)
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Api {
    /// Creates a client of a server.
    pub fn new(base_url: &str, key: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        Self {
            agent: config.into(),
            base_url: base_url.to_owned(),
            key: key.to_owned(),
        }
    }

    /// Creates a client of this user at another address.
    #[must_use]
    pub fn at(&self, base_url: &str) -> Self {
        Self::new(base_url, &self.key)
    }

    /// Returns `http://HOST:PORT`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Sends a request with bytes as its body.
    pub fn raw(&self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> Result<Answer> {
        self.raw_with(method, path, &[], body)
    }

    /// Sends a request with more headers and a JSON body, or none for `Null`.
    pub fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Answer> {
        let bytes = serde_json::to_vec(body)?;
        let body = Some(("application/json", bytes.as_slice())).filter(|_| !body.is_null());
        self.raw_with(method, path, headers, body)
    }

    /// Sends a request with more headers and bytes as its body.
    pub fn raw_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, &[u8])>,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base_url));
        if !self.key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some((content_type, bytes)) => self
                .agent
                .run(request.header("Content-Type", content_type).body(bytes)?),
            None => self.agent.run(request.body(())?),
        };
        let mut answer = answer.with_context(|| format!("{method} {path}"))?;
        let bytes = answer
            .body_mut()
            .with_config()
            .limit(64 << 20)
            .read_to_vec()?;
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()))
        };
        let answer = Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body,
        };
        document::check(method, path, &answer, !bytes.is_empty())?;
        Ok(answer)
    }

    /// Sends a request with a JSON body, or none for `Null`.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        match body {
            Value::Null => self.raw(method, path, None),
            body => {
                let bytes = serde_json::to_vec(body)?;
                self.raw(method, path, Some(("application/json", &bytes)))
            }
        }
    }

    /// Sends a `GET`.
    pub fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, &Value::Null)
    }

    /// Sends `POST /api/instance/`.
    pub fn create(&self, body: &Value) -> Result<Answer> {
        self.send("POST", "/api/instance/", body)
    }

    /// Creates the smallest container.
    pub fn small_container(&self) -> Result<Value> {
        self.create(&small("container"))?.expect(201)
    }

    /// Reads one instance.
    pub fn instance(&self, selector: &str) -> Result<Answer> {
        self.get(&format!("/api/instance/{selector}/"))
    }

    /// Lists all instances of the user.
    pub fn list(&self) -> Result<Vec<Value>> {
        match self.get("/api/instance/")?.expect(200)? {
            Value::Array(list) => Ok(list),
            other => bail!("not an array: {other}"),
        }
    }

    /// Sends `POST …/stop/` or `…/restart/`.
    pub fn act(&self, selector: &str, action: &str) -> Result<Answer> {
        self.send(
            "POST",
            &format!("/api/instance/{selector}/{action}/"),
            &Value::Null,
        )
    }

    /// Changes an instance.
    pub fn patch(&self, selector: &str, body: &Value) -> Result<Answer> {
        self.send("PATCH", &format!("/api/instance/{selector}/"), body)
    }

    /// Sends a `DELETE`.
    pub fn delete(&self, selector: &str) -> Result<Answer> {
        self.send(
            "DELETE",
            &format!("/api/instance/{selector}/"),
            &Value::Null,
        )
    }

    /// The live usage of an instance. The first look waits for its engine, which may be too busy to answer.
    pub fn stats(&self, selector: &str) -> Result<Value> {
        until(&format!("{selector} has stats"), || {
            let answer = self.get(&format!("/api/instance/{selector}/stats/"))?;
            Ok((answer.status == 200).then_some(answer.body))
        })
    }

    /// Waits until an instance is in a state.
    pub fn wait_for(&self, selector: &str, state: &str) -> Result<Value> {
        until(&format!("{selector} is {state}"), || {
            let body = self.instance(selector)?.expect(200)?;
            let now = body["state"].as_str().unwrap_or_default().to_owned();
            if now == "error" && state != "error" {
                let events = self.get(&format!("/api/event/?after=0&instance={selector}"))?;
                bail!("{selector} is in error: {}", events.body);
            }
            Ok((now == state).then_some(body))
        })
    }
}

/// The smallest possible request.
pub fn small(resource_type: &str) -> Value {
    json!({
        "resource_type": resource_type, "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
    })
}
