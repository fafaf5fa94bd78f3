//! Wharf's admin socket, in its data directory.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use wharf_testkit::http::{Endpoint, HttpClient, Request};

/// A client of the admin socket.
pub(super) struct Admin(HttpClient);

impl Admin {
    /// The client for a data directory.
    pub fn of(data: &Path) -> Self {
        Self(HttpClient::new(Endpoint::Unix(data.join("admin.sock"))))
    }

    /// The name of the installation in engines.
    pub fn installation(&self) -> Result<String> {
        let name = self.0.get("/installation")?;
        let name = name.as_str().context("no installation")?;
        Ok(name.to_owned())
    }

    /// Whether the node was observed without a deleted instance.
    pub fn has_purged(&self, uuid: &str) -> Result<bool> {
        let last = self.events(uuid)?.pop();
        Ok(last.is_some_and(|event| event.get("what").is_some_and(|what| what == "purged")))
    }

    /// The last reason in the event log of an instance, in the engine's words.
    pub fn why(&self, uuid: &str) -> Result<String> {
        let events = self.events(uuid)?;
        let mut reasons = events.iter().rev().filter_map(|event| event.get("why"));
        let why = reasons.find_map(Value::as_str);
        Ok(why.unwrap_or("Wharf gives no reason").to_owned())
    }

    fn events(&self, uuid: &str) -> Result<Vec<Value>> {
        let body = json!({ "instance": uuid });
        let response = self.0.send(Request::new("POST", "/events").json(body))?;
        Ok(serde_json::from_value(response.ok()?.json()?)?)
    }
}
