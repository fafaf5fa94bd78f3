//! What Wharf tells its operator alone, over the admin socket in its data directory.

use crate::http::{Client, Endpoint, Request};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;

/// A running Wharf's admin service.
pub(super) struct Admin(Client);

impl Admin {
    /// Of the Wharf that has this data directory.
    pub fn of(data: &Path) -> Self {
        Self(Client::new(Endpoint::Unix(data.join("admin.sock"))))
    }

    /// What names it in engines.
    pub fn installation(&self) -> Result<String> {
        let name = self.0.get("/installation")?;
        let name = name.as_str().context("no installation")?;
        Ok(name.to_owned())
    }

    /// Whether the node was seen without a deleted instance. The look counts what an engine was still
    /// making.
    pub fn has_purged(&self, uuid: &str) -> Result<bool> {
        let last = self.events(uuid)?.pop();
        Ok(last.is_some_and(|event| event.get("what").is_some_and(|what| what == "purged")))
    }

    /// Why an instance is as it is, in the engine's words.
    pub fn why(&self, uuid: &str) -> Result<String> {
        let events = self.events(uuid)?;
        let mut reasons = events.iter().rev().filter_map(|event| event.get("why"));
        let why = reasons.find_map(Value::as_str);
        Ok(why.unwrap_or("Wharf gives no reason").to_owned())
    }

    fn events(&self, uuid: &str) -> Result<Vec<Value>> {
        let body = json!({ "instance": uuid });
        let answer = self.0.send(Request::new("POST", "/events").json(body))?;
        Ok(serde_json::from_value(answer.ok()?.json()?)?)
    }
}
