//! A fake Docker engine with the behaviour that the driver needs, and with calls that fail on
//! demand.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test support: a test fails by panicking, and no test uses everything"
)]

pub mod given;
mod handle;
pub mod snapshot;

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use wharf_guest::fake::{Http, Sent, Transfer};
use wharf_guest::{EngineError, Header, JobState, Response};

/// When a call fails: before the engine did its work, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    Before,
    After,
}

/// The outcome of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    All,
    Full,
    Immovable,
    Broke,
}

#[derive(Debug, Clone, Default)]
pub struct Container {
    pub id: String,
    pub body: Value,
    pub files: Vec<String>,
    pub running: bool,
    /// Whether its processes stand still.
    pub paused: bool,
    pub started: bool,
    /// The number of its starts.
    pub starts: u32,
    /// The memory limit in effect while it runs.
    pub limit: u64,
    /// The id of its last network.
    pub network: Option<u64>,
    /// The container's addresses on other networks.
    pub others: BTreeMap<String, String>,
    /// The programs that were run in it.
    pub programs: Vec<Vec<String>>,
}

#[derive(Debug, Default)]
pub struct World {
    pub images: BTreeSet<String>,
    pub networks: BTreeMap<String, (u64, Value)>,
    pub containers: BTreeMap<String, Container>,
    /// Labels of the volumes.
    pub volumes: BTreeMap<String, Value>,
    /// Snapshots by their names.
    pub snapshots: BTreeMap<String, snapshot::Image>,
    /// The copy in progress.
    pub copy: Option<snapshot::Copy>,
    /// Whether the host waits for that copy.
    pub job: bool,
    /// The events that the engine remembers.
    pub events: Vec<snapshot::Event>,
    /// Whether the engine fails to remove a container.
    pub removals_fail: bool,
    /// The answer to each copy that fails.
    pub copies_fail: Option<(u16, &'static str)>,
    pub next_network: u64,
    pub next_container: u64,
    /// The bridges of all networks have vanished; a new network has one.
    pub no_bridge: bool,
    pub disk_limits: bool,
    /// The number of limits that the engine refused.
    pub refused_limits: u32,
    /// The size of each image.
    pub image_bytes: u64,
    /// The bytes in the files of each container, which the engine adds up as if none were sparse.
    pub written: u64,
    /// The storage driver.
    pub storage: &'static str,
    /// A name and value of the storage driver's status.
    pub storage_says: (&'static str, &'static str),
    /// Whether the node has `/dev/kvm`.
    pub kvm: bool,
    /// Whether lxcfs runs on the node.
    pub lxcfs: bool,
    /// Whether the engine cannot mount files of lxcfs into its user namespaces.
    pub locked: bool,
    /// The container in whose start the engine was killed.
    pub half_started: Option<String>,
    /// The exit code of all programs.
    pub exit_code: i64,
    /// Whether the engine behaves like Podman 4.3.
    pub podman: bool,
    /// Whether a proxy removes the headers of its answers.
    pub headless: bool,
    pub memory_used: u64,
    /// The part of the memory that is page cache.
    pub cached: u64,
    /// Resident memory of each process, in every container.
    pub resident_kib: Vec<u64>,
    pub pull: Option<&'static str>,
    /// The transfer in progress, as `from` and `to`, and its outcome.
    pub transfer: Option<(String, String)>,
    pub moved: Option<Moved>,
    /// The files that come from another node in this transfer.
    pub arriving: Option<Vec<String>>,
    /// The files that the host has taken.
    pub sent: Option<Vec<String>>,
    /// Whether the host takes no content of a snapshot.
    pub takes_none: bool,
    /// A new name for each container right after its creation.
    pub renamed_to: Option<&'static str>,
    /// Containers that were started before their files were inserted.
    pub started_bare: Vec<String>,
}

impl Container {
    /// The time of its last start.
    pub fn started_at(&self) -> String {
        format!("2026-11-27T18:{:02}:00.5Z", self.starts)
    }
}

impl World {
    /// The name of the container with this name or id.
    pub fn name_of(&self, called: &str) -> String {
        let mut all = self.containers.iter();
        let found = all.find(|(name, container)| *name == called || container.id == called);
        found.map_or(called, |(name, _)| name).to_owned()
    }
}

/// The files that a node offers.
pub type Offer = Rc<RefCell<Option<Vec<String>>>>;

#[derive(Default)]
pub struct Fake {
    pub world: RefCell<World>,
    /// The host's offer, the same for all nodes.
    pub offer: Offer,
    pub calls: Cell<usize>,
    break_at: Cell<Option<(usize, Break)>>,
}

impl Fake {
    /// Creates an engine with the image and with disk limits.
    pub fn new() -> Self {
        let fake = Self::default();
        fake.world
            .borrow_mut()
            .images
            .insert("localhost/wharf/base:1".into());
        fake.world.borrow_mut().disk_limits = true;
        fake.world.borrow_mut().lxcfs = true;
        fake.world.borrow_mut().image_bytes = 512 << 20;
        fake.world.borrow_mut().written = 12345;
        fake.world.borrow_mut().storage = "btrfs";
        fake
    }

    /// Creates the engine of another node of the same host.
    pub fn beside(other: &Self) -> Self {
        Self {
            offer: Rc::clone(&other.offer),
            ..Self::new()
        }
    }

    /// Carries out a transfer with one end: notes the offer, or takes it.
    fn carry(&self, world: &mut World, transfer: &Transfer) -> Result<(), EngineError> {
        let name = |path: &str| world.name_of(path.split('/').nth(2).unwrap());
        let Some(write) = &transfer.write else {
            let read = transfer.read.as_deref().unwrap();
            let called = name(read);
            let from = &world.containers[&called];
            assert!(!from.running);
            let changes = transfer.changes.as_deref().map(name);
            if called.starts_with("wharf-carrier-") {
                assert_eq!(changes, None, "it has never run");
                if world.takes_none {
                    return Err(EngineError::Unreachable("nothing takes the content".into()));
                }
                world.transfer = Some((called, String::new()));
                return Ok(());
            }
            assert_eq!(changes, Some(called));
            self.offer.replace(Some(from.files.clone()));
            return Ok(());
        };
        let unoffered = || EngineError::Unreachable("no other engine offers the content".into());
        let files = self.offer.take().ok_or_else(unoffered)?;
        let to = name(write);
        let part = world.containers.get_mut(&to).unwrap();
        assert!(!part.started && part.files.is_empty(), "it must be new");
        part.files = files.iter().take(1).cloned().collect();
        world.transfer = Some((String::new(), to));
        world.arriving = Some(files);
        Ok(())
    }

    /// Lets the `nth` call from now on fail, counting from 0.
    pub fn break_call(&self, nth: usize, when: Break) {
        self.break_at.set(Some((self.calls.get() + nth, when)));
    }

    /// Returns whether the requested failure has happened.
    pub fn broke(&self) -> bool {
        self.break_at.get().is_none()
    }
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
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
        let server = if self.world.borrow().podman {
            "Libpod/4.3.1 (linux)"
        } else {
            "Docker/20.10.24+dfsg1 (linux)"
        };
        let headers = if self.world.borrow().headless {
            Vec::new()
        } else {
            vec![
                header("server", server),
                header("api-version", "1.41"),
                header("date", "Fri, 27 Nov 2026 18:40:19 GMT"),
            ]
        };
        let body = match &body {
            Value::Array(events) if request.path.starts_with("/events") => {
                let lines = events.iter().map(|event| format!("{event}\n"));
                lines.collect::<String>()
            }
            _ => body.to_string(),
        };
        Ok(Response {
            status,
            headers,
            body: body.into_bytes(),
        })
    }

    fn begin_transfer(&self, transfer: &Transfer) -> Result<(), EngineError> {
        let mut world = self.world.borrow_mut();
        let name = |path: &str| world.name_of(path.split('/').nth(2).unwrap());
        let (Some(read), Some(write)) = (&transfer.read, &transfer.write) else {
            return self.carry(&mut world, transfer);
        };
        let (from, to) = (name(read), name(write));
        assert!(!world.containers[&from].running && !world.containers[&to].started);
        assert!(
            world.containers[&to].files.is_empty(),
            "the destination must be empty"
        );
        // A transfer in progress has written some of the files.
        let part = world.containers[&from].files.iter().take(1).cloned();
        let part = part.collect();
        world.containers.get_mut(&to).unwrap().files = part;
        world.transfer = Some((from, to));
        Ok(())
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        let mut world = self.world.borrow_mut();
        let Some((from, to)) = world.transfer.clone() else {
            return Ok(None);
        };
        let Some(moved) = world.moved else {
            return Ok(Some(JobState::Running(Some("16 MiB".into()))));
        };
        world.transfer = None;
        let response = |status, message: &str| {
            Ok(Some(JobState::Done(Response {
                status,
                headers: Vec::new(),
                body: json!({ "message": message }).to_string().into_bytes(),
            })))
        };
        match moved {
            Moved::All => {
                let arrived = world.arriving.take();
                let files = arrived.unwrap_or_else(|| world.containers[&from].files.clone());
                match world.containers.get_mut(&to) {
                    Some(container) => container.files = files,
                    None => world.sent = Some(files),
                }
                response(200, "")
            }
            Moved::Full => response(500, "write /root/d: disk quota exceeded"),
            Moved::Immovable => response(413, "this content cannot move"),
            Moved::Broke => Ok(Some(JobState::Failed(EngineError::Unreachable(
                "the archive ended early".into(),
            )))),
        }
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        self.world.borrow_mut().transfer = None;
        Ok(())
    }

    fn job(&self, request: &Sent) -> Result<JobState, EngineError> {
        if request.name == "commit" {
            return Ok(self.world.borrow_mut().commit(request));
        }
        let image = request.path.strip_prefix("/images/create?fromImage=");
        let image = image.unwrap().replace("%2F", "/").replace("%3A", ":");
        let image = image.replace("&tag=", ":");
        let mut world = self.world.borrow_mut();
        let lines = match world.pull.take() {
            None => {
                world.pull = Some("Downloading");
                let line = json!({"status": "Downloading", "id": "x"}).to_string();
                return Ok(JobState::Running(Some(line)));
            }
            Some("Downloading") => {
                world.images.insert(image);
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
