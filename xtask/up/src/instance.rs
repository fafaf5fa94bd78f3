//! One instance over REST, addressed by its name.

use super::account::Account;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_testkit::http::{HttpClient, Request, Response};
use wharf_testkit::progress;

/// A restart waits for the node.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The status of an answer for lack of room.
const NO_ROOM: u16 = 422;

/// The result of a restart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Restart {
    Begun,
    /// The node could not.
    Failed,
    NoRoom,
}

/// The name and the type of an instance.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub name: &'static str,
    pub resource_type: &'static str,
}

/// A client for one instance.
pub(super) struct NamedInstance<'a> {
    pub client: &'a HttpClient,
    pub account: &'a Account,
    pub kind: Kind,
}

impl NamedInstance<'_> {
    /// Returns the instance, if there is one.
    pub fn find(&self) -> Result<Option<Value>> {
        let found = self.send(Request::new("GET", &self.path()))?;
        match found.status {
            404 => Ok(None),
            _ => Ok(Some(found.ok()?.json()?)),
        }
    }

    /// Creates the instance, if there is room.
    pub fn create(&self) -> Result<Option<Value>> {
        let Kind {
            name,
            resource_type,
        } = self.kind;
        progress::step(&format!(
            "Creating the {resource_type} {name}: 1 vCPU, 1 GiB RAM, 10 GiB disk"
        ));
        let body = json!({
            "name": name, "resource_type": resource_type,
            "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
            "public_key": self.account.ssh.public()?,
        });
        let create = Request::new("POST", "/api/instance/").json(body);
        let created = self.send(create)?;
        if created.status == NO_ROOM {
            self.tell_of_no_room(&created);
            return Ok(None);
        }
        created.ok().context("create")?.json().map(Some)
    }

    fn tell_of_no_room(&self, refused: &Response) {
        let why = refused.json().unwrap_or_default();
        let why = why.get("message").and_then(Value::as_str);
        progress::note(&format!(
            "There is no room for {}: {}\nWharf serves without it; delete or stop an instance to make room.",
            self.kind.name,
            why.unwrap_or("the capacity is used up")
        ));
    }

    /// Restarts the instance.
    pub fn restart(&self) -> Result<Restart> {
        let path = format!("{}restart/", self.path());
        let restarted = self.send(Request::new("POST", &path))?;
        match restarted.status {
            // The node refused, or is out of reach.
            502 => Ok(Restart::Failed),
            NO_ROOM => {
                self.tell_of_no_room(&restarted);
                Ok(Restart::NoRoom)
            }
            _ => restarted.ok().context("restart").map(|_| Restart::Begun),
        }
    }

    /// Returns the usage of a container.
    pub fn usage(&self) -> Result<Value> {
        let path = format!("{}stats/", self.path());
        let usage = self.send(Request::new("GET", &path))?;
        usage.ok().context("usage")?.json()
    }

    /// Renames the instance, which frees its name.
    pub fn rename(&self, name: &str) -> Result<()> {
        let body = json!({ "name": name });
        let renamed = self.send(Request::new("PATCH", &self.path()).json(body))?;
        renamed.ok().context("rename").map(drop)
    }

    /// Deletes the instance.
    pub fn delete(&self) -> Result<()> {
        progress::step(&format!("Deleting {}", self.kind.name));
        let deleted = self.send(Request::new("DELETE", &self.path()))?;
        ensure!(deleted.status == 204, "delete: status {}", deleted.status);
        ensure!(
            self.find()?.is_none(),
            "a deleted instance is still found by its name"
        );
        Ok(())
    }

    fn path(&self) -> String {
        format!("/api/instance/{}/", self.kind.name)
    }

    fn send(&self, request: Request<'_>) -> Result<Response> {
        self.client
            .send(request.key(&self.account.key).timeout(TIMEOUT))
    }
}

/// A string field of an instance.
pub(super) fn text<'a>(instance: &'a Value, field: &str) -> Result<&'a str> {
    let value = instance.get(field).and_then(Value::as_str);
    value.with_context(|| format!("the instance has no {field}"))
}
