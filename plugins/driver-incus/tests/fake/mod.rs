//! An engine of one instance that breaks off, is killed, or has a full disk.

use crate::TWO;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use wharf_guest::fake::{Body, Http, Method, Sent};
use wharf_guest::{EngineError, Response};

#[derive(Clone, Default)]
pub struct FakeSnapshot {
    pub disk: String,
    pub config: Value,
    pub devices: Value,
    /// The pool has it.
    pub is_there: bool,
}

/// An engine with one stopped instance.
pub struct Fake {
    /// The content of its disk.
    pub disk: RefCell<String>,
    pub config: RefCell<Value>,
    pub devices: RefCell<Value>,
    pub snapshots: RefCell<BTreeMap<String, FakeSnapshot>>,
    /// Bytes of the disk that it shares with nothing.
    pub used: Cell<u64>,
    /// The disk is full, unless it has more than its size.
    pub full: Cell<bool>,
    /// The disk that an interrupted restore has left.
    pub left_over: Cell<bool>,
    /// The request after which the engine is killed. It does the first half of a take or a restore.
    pub killed_at: Cell<Option<usize>>,
    pub calls: Cell<usize>,
    /// The request after a restore that fails, and how often it does.
    pub fails: Cell<(usize, usize)>,
    /// Requests since the last restore.
    pub since: Cell<Option<usize>>,
    pub forbids: bool,
    /// The volumes of devices that do not exist.
    pub gone: RefCell<Vec<String>>,
    /// The sizes that the disk has had.
    pub sizes: RefCell<Vec<String>>,
}

impl Fake {
    pub fn new() -> Self {
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

    pub fn has_room(&self) -> bool {
        let size = self.devices.borrow()["root"]["size"].clone();
        !self.full.get() || size.as_str().is_some_and(|size| size.ends_with("MiB"))
    }

    /// The engine checks all devices of an instance at each change.
    pub fn has_gone(&self, body: &Value) -> bool {
        let mut devices = self.devices.borrow().clone();
        for (name, device) in body["devices"].as_object().into_iter().flatten() {
            devices[name] = device.clone();
        }
        let gone = self.gone.borrow();
        let is_gone = |device: &Value| gone.iter().any(|name| device["source"] == **name);
        devices.as_object().unwrap().values().any(is_gone)
    }

    pub fn merge(&self, body: &Value) {
        for (of, into) in [("config", &self.config), ("devices", &self.devices)] {
            for (key, value) in body[of].as_object().into_iter().flatten() {
                into.borrow_mut()[key] = value.clone();
            }
        }
        if let Some(size) = body["devices"]["root"]["size"].as_str() {
            self.sizes.borrow_mut().push(size.to_owned());
        }
    }

    pub fn answer(&self, request: &Sent, dies: bool) -> (u16, Value) {
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
            "images-of-instance" | "images-of-snapshot" => sync(json!([])),
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
