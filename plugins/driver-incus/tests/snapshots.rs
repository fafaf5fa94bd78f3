//! Snapshots and restores, on an engine that breaks off, is killed, or has a full disk.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use driver_incus::api::model::{Pool, Project};
use driver_incus::context::Context;
use driver_incus::snapshots;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use wharf_guest::fake::{Body, Host, Http, Method, Sent};
use wharf_guest::{
    Blueprint, Complete, EngineError, Error, Network, Node, Phase, PublishedPort, Readiness,
    Report, ResourceType, Response, Size, SnapshotKind, SnapshotReport, SnapshotState, Spec, Tag,
    Target,
};

const FILE: &str = include_str!("../requests.toml");
const ONE: &str = "00000000-0000-4000-8000-000000000001";
const TWO: &str = "00000000-0000-4000-8000-000000000002";

#[derive(Clone, Default)]
struct FakeSnapshot {
    disk: String,
    config: Value,
    devices: Value,
    /// The pool has it.
    is_there: bool,
}

/// An engine with one stopped instance.
struct Fake {
    /// The content of its disk.
    disk: RefCell<String>,
    config: RefCell<Value>,
    devices: RefCell<Value>,
    snapshots: RefCell<BTreeMap<String, FakeSnapshot>>,
    /// Bytes of the disk that it shares with nothing.
    used: Cell<u64>,
    /// The disk is full, unless it has more than its size.
    full: Cell<bool>,
    /// The disk that an interrupted restore has left.
    left_over: Cell<bool>,
    /// The request after which the engine is killed. It does the first half of a take or a restore.
    killed_at: Cell<Option<usize>>,
    calls: Cell<usize>,
    /// The request after a restore that fails, and how often it does.
    fails: Cell<(usize, usize)>,
    /// Requests since the last restore.
    since: Cell<Option<usize>>,
    forbids: bool,
    /// The volumes of devices that do not exist.
    gone: RefCell<Vec<String>>,
    /// The sizes that the disk has had.
    sizes: RefCell<Vec<String>>,
}

impl Fake {
    fn new() -> Self {
        Self {
            disk: RefCell::new("present".into()),
            config: RefCell::new(json!({
                "user.wharf.installation": "11111111-2222-4333-8444-555555555555",
                "user.wharf.start": "done", "limits.memory": "4GiB",
            })),
            devices: RefCell::new(json!({ "root": { "type": "disk", "size": "10GiB" } })),
            snapshots: RefCell::default(),
            used: Cell::new(3 << 30),
            full: Cell::new(false),
            left_over: Cell::new(false),
            killed_at: Cell::new(None),
            calls: Cell::new(0),
            fails: Cell::new((0, 0)),
            since: Cell::new(None),
            forbids: false,
            gone: RefCell::default(),
            sizes: RefCell::default(),
        }
    }

    fn has_room(&self) -> bool {
        let size = self.devices.borrow()["root"]["size"].clone();
        !self.full.get() || size.as_str().is_some_and(|size| size.ends_with("MiB"))
    }

    /// The engine checks all devices of an instance at each change.
    fn has_gone(&self, body: &Value) -> bool {
        let mut devices = self.devices.borrow().clone();
        for (name, device) in body["devices"].as_object().into_iter().flatten() {
            devices[name] = device.clone();
        }
        let gone = self.gone.borrow();
        let is_gone = |device: &Value| gone.iter().any(|name| device["source"] == **name);
        devices.as_object().unwrap().values().any(is_gone)
    }

    fn merge(&self, body: &Value) {
        for (of, into) in [("config", &self.config), ("devices", &self.devices)] {
            for (key, value) in body[of].as_object().into_iter().flatten() {
                into.borrow_mut()[key] = value.clone();
            }
        }
        if let Some(size) = body["devices"]["root"]["size"].as_str() {
            self.sizes.borrow_mut().push(size.to_owned());
        }
    }

    fn answer(&self, request: &Sent, dies: bool) -> (u16, Value) {
        let quota = (
            500,
            json!({ "type": "error", "error": "backup.yaml: disk quota exceeded" }),
        );
        let body = match &request.body {
            Body::Json(text) => serde_json::from_str(text).unwrap(),
            _ => Value::Null,
        };
        let path = request.path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default().to_owned();
        let found = self.snapshots.borrow().get(&last).cloned();
        let sync = |metadata: Value| (200, json!({ "type": "sync", "metadata": metadata }));
        if request.method == Method::Patch && self.has_gone(&body) {
            let why = "Failed loading custom volume: not found";
            return (
                404,
                json!({ "type": "error", "error": why, "error_code": 404 }),
            );
        }
        match request.name.as_str() {
            "read" => sync(json!({
                "config": *self.config.borrow(), "devices": *self.devices.borrow(),
                "status_code": 102, "last_used_at": "2026-11-25T01:13:46Z", "location": "m1",
            })),
            "usage" => sync(json!({ "disk": { "root": { "usage": self.used.get() } } })),
            "operations" => sync(json!({})),
            "disks" => {
                let base = "/1.0/storage-pools/default/volumes/container";
                sync(json!([format!("{base}/wh-55555555-{TWO}-1?project=wharf")]))
            }
            "read-listed" => sync(json!({
                "config": { "volatile.idmap.base": "65536" }, "location": "m1",
            })),
            "choose-ids" => {
                self.merge(&json!({ "config": { "volatile.idmap.base": "131072" } }));
                sync(json!({}))
            }
            "count-snapshots" => sync(
                self.snapshots
                    .borrow()
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .into(),
            ),
            "read-snapshot" => match found {
                Some(one) => sync(json!({
                    "config": one.config, "devices": one.devices,
                    "size": if one.is_there { 16_384 } else { -1 },
                })),
                None => (
                    404,
                    json!({ "type": "error", "error": "not found", "error_code": 404 }),
                ),
            },
            "take-snapshot" if self.forbids => {
                let why = "Project \"wharf\" doesn't allow for snapshot creation";
                (
                    500,
                    json!({ "type": "error", "error": why, "error_code": 500 }),
                )
            }
            "take-snapshot" if !self.has_room() => quota,
            "take-snapshot" => {
                let taken = FakeSnapshot {
                    disk: self.disk.borrow().clone(),
                    config: self.config.borrow().clone(),
                    devices: self.devices.borrow().clone(),
                    is_there: !dies,
                };
                let name = body["name"].as_str().unwrap().to_owned();
                assert!(self.snapshots.borrow_mut().insert(name, taken).is_none());
                self.used.set(1 << 14);
                sync(json!({}))
            }
            "drop-snapshot" => {
                self.snapshots.borrow_mut().remove(&last);
                sync(json!({}))
            }
            "restore" if self.left_over.get() => {
                let why = "rename wh-x wh-x.incustmp: file exists";
                (
                    200,
                    json!({ "type": "error", "error": why, "error_code": 500 }),
                )
            }
            "restore" => {
                let name = body["restore"].as_str().unwrap();
                let one = self.snapshots.borrow()[name].clone();
                *self.disk.borrow_mut() = one.disk;
                self.left_over.set(dies);
                if !dies {
                    *self.config.borrow_mut() = one.config;
                    *self.devices.borrow_mut() = one.devices;
                }
                sync(json!({}))
            }
            "note-snapshot" | "note-restore" | "set-root" | "mask" | "furnish" => {
                self.merge(&body);
                if self.has_room() {
                    sync(json!({}))
                } else {
                    quota
                }
            }
            other => panic!("{other}"),
        }
    }
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        let call = self.calls.replace(self.calls.get() + 1);
        let dies = self.killed_at.get() == Some(call);
        let (nth, times) = self.fails.get();
        self.since.set(self.since.get().map(|since| since + 1));
        let (status, body) = if times > 0 && self.since.get() == Some(nth) {
            self.fails.set((nth, times - 1));
            let why = json!({ "type": "error", "error": "internal", "error_code": 500 });
            (500, why)
        } else {
            self.answer(request, dies)
        };
        if request.name == "restore" {
            self.since.set(Some(0));
        }
        if dies {
            return Err(EngineError::Timeout);
        }
        Ok(Response {
            status,
            headers: Vec::new(),
            body: body.to_string().into(),
        })
    }
}

fn node() -> Node {
    Node {
        name: "n1".into(),
        installation: "11111111-2222-4333-8444-555555555555".into(),
        settings:
            r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9"}"#
                .into(),
        hint: String::new(),
    }
}

fn spec() -> Spec {
    Spec {
        tag: Tag {
            instance: ONE.into(),
            incarnation: 1,
        },
        generation: 7,
        resource_type: ResourceType::Container,
        hostname: "one".into(),
        size: Size {
            n_vcpus: 1,
            mem_gib: 2,
            disk_size_gib: 10,
        },
        network: Network {
            id: "one".into(),
            subnet: "10.79.0.0/16".into(),
            gateway: "10.79.0.1".into(),
            address: "10.79.0.5".into(),
        },
        published: vec![PublishedPort {
            node_port: 20_001,
            instance_port: 22,
            private: false,
        }],
        public_network: None,
        wan_ports: Vec::new(),
        gpu_devices: Vec::new(),
        volumes: Vec::new(),
        source: None,
        may_exist: true,
        blueprint: Blueprint {
            images: Vec::new(),
            files: Vec::new(),
            environment: Vec::new(),
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

fn target() -> Target {
    let spec = spec();
    Target {
        tag: spec.tag,
        generation: spec.generation,
        resource_type: spec.resource_type,
        size: spec.size,
        network: spec.network,
        public_network: None,
        wan_ports: Vec::new(),
        volumes: Vec::new(),
    }
}

fn take(fake: &Fake, id: &str) -> Result<SnapshotReport, Error> {
    let (node, target) = (node(), target());
    let host = Host::take(FILE, &node, &target, id, fake);
    snapshots::take(&Context::new(&node, &host)?, &target, id)
}

fn restore(fake: &Fake, id: &str) -> Result<Report, Error> {
    let (node, spec) = (node(), spec());
    let host = Host::restore(FILE, &node, &spec, id, fake);
    snapshots::restore(&Context::new(&node, &host)?, &spec, id)
}

/// Repeats a take until it is ready, and returns the bytes.
fn taken(fake: &Fake, id: &str) -> u64 {
    for _ in 0..5 {
        if let Ok(SnapshotReport {
            state: SnapshotState::Ready(Complete { bytes, .. }),
            ..
        }) = take(fake, id)
        {
            return bytes;
        }
    }
    panic!("it is never ready");
}

#[test]
fn a_take_that_breaks_anywhere_ends_with_one_complete_snapshot() {
    for at in 0..8 {
        let fake = Fake::new();
        fake.killed_at.set(Some(at));
        assert_eq!(taken(&fake, ONE), 3 << 30, "killed at {at}");
        let all = fake.snapshots.borrow();
        let mut all = all.values();
        assert!(all.next().is_some_and(|one| one.is_there) && all.next().is_none());
    }
}

#[test]
fn bytes_count_what_a_snapshot_shares_with_earlier_ones() {
    let fake = Fake::new();
    assert_eq!(taken(&fake, ONE), 3 << 30);
    fake.used.set(2 << 30);
    assert_eq!(taken(&fake, TWO), 5 << 30);
    // Without snapshots, the disk shares nothing.
    fake.snapshots.borrow_mut().clear();
    fake.used.set(4 << 30);
    assert_eq!(taken(&fake, ONE), 4 << 30);
    fake.snapshots.borrow_mut().clear();
    fake.used.set(0);
    let report = take(&fake, TWO).unwrap();
    assert!(
        matches!(report.state, SnapshotState::Failed(_)),
        "{report:?}"
    );
}

#[test]
fn a_full_disk_has_more_room_only_for_the_snapshot() {
    let fake = Fake::new();
    fake.full.set(true);
    taken(&fake, ONE);
    assert_eq!(*fake.sizes.borrow(), ["10256MiB", "10GiB"]);
    let restored = restore(&fake, ONE).unwrap();
    assert!(matches!(restored.phase, Phase::Stopped(_)));
    assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
}

#[test]
fn a_restored_instance_has_the_disk_of_then_and_all_else_of_now() {
    let fake = Fake::new();
    fake.config.borrow_mut()["user.wharf.start"] = "begun".into();
    let old = json!({ "type": "disk", "source": "wv-x", "path": "/x" });
    fake.devices.borrow_mut()[format!("vol-{TWO}")] = old;
    taken(&fake, ONE);
    *fake.disk.borrow_mut() = "later".into();
    fake.devices.borrow_mut()[format!("vol-{TWO}")] = json!({ "type": "none" });
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)) && report.generation == 7);
    assert_eq!(*fake.disk.borrow(), "present");
    let (config, devices) = (fake.config.borrow(), fake.devices.borrow());
    assert_eq!(config["limits.memory"], "2GiB");
    assert_eq!(config["user.wharf.start"], "done");
    assert_eq!(config["user.wharf.restore"], "none");
    assert_eq!(devices[format!("vol-{TWO}")], json!({ "type": "none" }));
    assert_eq!(devices["port22"]["listen"], "tcp:192.0.2.1:20001");
    // Another size comes first, so that the limit is set.
    assert_eq!(*fake.sizes.borrow(), ["10256MiB", "10GiB"]);
}

#[test]
fn a_restore_meets_no_volume_that_is_gone() {
    let fake = Fake::new();
    fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
    for id in [ONE, TWO] {
        let old = json!({ "type": "disk", "source": format!("wv-{id}"), "path": format!("/{id}") });
        fake.devices.borrow_mut()[format!("vol-{id}")] = old;
    }
    fake.devices.borrow_mut()["gpu0"] = json!({ "type": "gpu" });
    taken(&fake, ONE);
    for id in [ONE, TWO] {
        fake.devices.borrow_mut()[format!("vol-{id}")] = json!({ "type": "none" });
        fake.gone.borrow_mut().push(format!("wv-{id}"));
    }
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)));
    let devices = fake.devices.borrow();
    for name in [format!("vol-{ONE}"), format!("vol-{TWO}"), "gpu0".into()] {
        assert_eq!(devices[&name], json!({ "type": "none" }), "{name}");
    }
    assert_eq!(devices["port22"]["listen"], "tcp:192.0.2.1:20001");
}

#[test]
fn a_restored_range_of_ids_that_another_one_has_is_changed_at_once() {
    let fake = Fake::new();
    fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
    taken(&fake, ONE);
    // A further call would restore the range once more.
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)));
    assert_eq!(fake.config.borrow()["volatile.idmap.base"], "131072");
}

#[test]
fn a_restore_that_breaks_anywhere_is_continued() {
    for at in 0..10 {
        let fake = Fake::new();
        taken(&fake, ONE);
        *fake.disk.borrow_mut() = "later".into();
        fake.killed_at.set(Some(fake.calls.get() + at));
        let ended = (0..3).any(|_| {
            restore(&fake, ONE).is_ok_and(|report| matches!(report.phase, Phase::Stopped(_)))
        });
        assert!(ended && *fake.disk.borrow() == "present", "killed at {at}");
        assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
        assert_eq!(fake.config.borrow()["user.wharf.restore"], "none");
    }
}

#[test]
fn a_restored_disk_is_never_said_to_be_as_it_was() {
    for nth in 1.. {
        let mut left = 0;
        for times in [1, 5] {
            let fake = Fake::new();
            fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
            taken(&fake, ONE);
            *fake.disk.borrow_mut() = "later".into();
            fake.fails.set((nth, times));
            for call in 0.. {
                fake.since.set(None);
                let phase = restore(&fake, ONE).unwrap().phase;
                assert_eq!(*fake.disk.borrow(), "present");
                if matches!(phase, Phase::Stopped(_)) {
                    break;
                }
                assert!(matches!(phase, Phase::Growing(_)) && call < 5, "{phase:?}");
            }
            left = fake.fails.get().1;
            assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
            assert_eq!(fake.config.borrow()["user.wharf.restore"], "none");
        }
        if left > 0 {
            assert!(nth > 6, "{nth} requests");
            break;
        }
    }
}

#[test]
fn the_remains_of_a_restore_are_not_taken_for_another_one() {
    let fake = Fake::new();
    taken(&fake, ONE);
    taken(&fake, TWO);
    fake.left_over.set(true);
    *fake.disk.borrow_mut() = "later".into();
    for id in [ONE, ONE, TWO] {
        let error = restore(&fake, id).unwrap_err();
        assert!(
            matches!(&error, Error::Other(why) if why.contains(".incustmp")),
            "{error:?}"
        );
    }
    assert_eq!(*fake.disk.borrow(), "later");
}

#[test]
fn the_remains_of_an_ended_restore_are_not_taken_for_another_one() {
    let fake = Fake::new();
    taken(&fake, ONE);
    taken(&fake, TWO);
    // The restore itself is the fourth call.
    fake.killed_at.set(Some(fake.calls.get() + 3));
    let ended = (0..3)
        .any(|_| restore(&fake, ONE).is_ok_and(|report| matches!(report.phase, Phase::Stopped(_))));
    assert!(ended && fake.left_over.get());
    *fake.disk.borrow_mut() = "later".into();
    for at in 0..6 {
        fake.killed_at.set(Some(fake.calls.get() + at));
        for _ in 0..3 {
            let restored = restore(&fake, TWO);
            let ended = restored.is_ok_and(|report| matches!(report.phase, Phase::Stopped(_)));
            assert!(!ended, "killed at {at}");
        }
    }
    assert_eq!(*fake.disk.borrow(), "later");
}

#[test]
fn a_restricted_project_takes_none_and_says_why() {
    let fake = Fake {
        forbids: true,
        ..Fake::new()
    };
    let Err(Error::Unsupported(why)) = take(&fake, ONE) else {
        panic!("it is taken");
    };
    assert!(why.contains("restricted.snapshots=allow"), "{why}");
    let pool = |driver: &str| Pool {
        driver: driver.to_owned(),
    };
    let project = |pairs: &[(&str, &str)]| Project {
        config: pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Project::default()
    };
    let restricted = project(&[("restricted", "true")]);
    let open = project(&[("restricted", "true"), ("restricted.snapshots", "allow")]);
    let shared =
        |pool: &Pool, project: &Project| snapshots::kind(pool, project) == SnapshotKind::Shared;
    assert!(!shared(&pool("btrfs"), &restricted));
    assert!(shared(&pool("btrfs"), &open));
    assert!(shared(&pool("btrfs"), &Project::default()));
    // It restores only the newest one.
    assert!(!shared(&pool("zfs"), &open));
}
