//! A model of a Docker engine: enough of its behaviour to run the driver against, and calls that
//! break at will.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: a test fails by panicking, and none uses everything"
)]

pub mod given;
mod handle;

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use wharf_guest::{Engine, EngineError, Header, JobState, Request, Response};

/// When a call breaks: before the engine did its work, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    Before,
    After,
}

#[derive(Debug, Clone, Default)]
pub struct Container {
    pub body: Value,
    pub files: Vec<String>,
    pub running: bool,
    pub started: bool,
    /// The memory limit in force while it runs.
    pub limit: u64,
    /// Identity of the network it was last on.
    pub network: Option<u64>,
    /// Its addresses on other networks.
    pub others: BTreeMap<String, String>,
    /// Programs that were run in it.
    pub programs: Vec<Vec<String>>,
}

#[derive(Debug, Default)]
pub struct World {
    pub images: BTreeSet<String>,
    pub networks: BTreeMap<String, (u64, Value)>,
    pub containers: BTreeMap<String, Container>,
    pub next_network: u64,
    pub disk_limits: bool,
    /// The node has `/dev/kvm`.
    pub kvm: bool,
    /// What programs end with.
    pub exit_code: i64,
    /// It is a Podman 4.3, as far as that differs.
    pub podman: bool,
    /// Something in between removes the headers of its answers.
    pub headless: bool,
    pub memory_used: u64,
    /// Of each process in any container.
    pub resident_kib: Vec<u64>,
    pub pull: Option<&'static str>,
    /// Containers that were started before their files were in.
    pub started_bare: Vec<String>,
}

#[derive(Default)]
pub struct Fake {
    pub world: RefCell<World>,
    pub calls: Cell<usize>,
    break_at: Cell<Option<(usize, Break)>>,
}

impl Fake {
    /// With the image there, and disk limits.
    pub fn new() -> Self {
        let fake = Self::default();
        fake.world
            .borrow_mut()
            .images
            .insert("localhost/wharf/base:1".into());
        fake.world.borrow_mut().disk_limits = true;
        fake
    }

    /// Lets the nth call from now on break, counting from 0.
    pub fn break_call(&self, nth: usize, when: Break) {
        self.break_at.set(Some((self.calls.get() + nth, when)));
    }

    /// Whether the break that was ordered has happened.
    pub fn broke(&self) -> bool {
        self.break_at.get().is_none()
    }
}

impl Engine for Fake {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        let call = self.calls.replace(self.calls.get() + 1);
        let breaks = self
            .break_at
            .get()
            .filter(|(at, _)| *at == call)
            .map(|(_, when)| when);
        if breaks.is_some() {
            self.break_at.set(None);
        }
        if breaks == Some(Break::Before) {
            return Err(EngineError::Unreachable("no connection".into()));
        }
        let (status, body) = handle::handle(&mut self.world.borrow_mut(), request);
        if breaks == Some(Break::After) {
            return Err(EngineError::Timeout);
        }
        let header = |name: &str, value: &str| Header {
            name: name.into(),
            value: value.into(),
        };
        let server = match self.world.borrow().podman {
            true => "Libpod/4.3.1 (linux)",
            false => "Docker/20.10.24+dfsg1 (linux)",
        };
        let headers = match self.world.borrow().headless {
            true => Vec::new(),
            false => vec![header("server", server), header("api-version", "1.41")],
        };
        Ok(Response {
            status,
            headers,
            body: body.to_string().into_bytes(),
        })
    }

    fn job(&self, key: &str, request: &Request) -> Result<JobState, EngineError> {
        assert!(
            request.path.starts_with("/images/create?fromImage="),
            "{}",
            request.path
        );
        let image = key.strip_prefix("pull:").unwrap();
        let mut world = self.world.borrow_mut();
        let lines = match world.pull.take() {
            None => {
                world.pull = Some("Downloading");
                let line = json!({"status": "Downloading", "id": "x"}).to_string();
                return Ok(JobState::Running(Some(line)));
            }
            Some("Downloading") => {
                world.images.insert(image.into());
                json!({"status": "Downloaded"})
            }
            Some(error) => json!({"error": error, "errorDetail": {"message": error}}),
        };
        let body = format!("{{\"status\":\"Pulling\"}}\r\n{lines}\r\n").into_bytes();
        Ok(JobState::Done(Response {
            status: 200,
            headers: Vec::new(),
            body,
        }))
    }
}
