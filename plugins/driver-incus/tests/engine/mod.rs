//! A scripted engine.

mod networks;

pub use networks::FakeNetwork;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use wharf_guest::fake::{Body, Http, Method, Sent};
use wharf_guest::{EngineError, Response};

const OPERATION: &str = "00000000-0000-4000-8000-00000000000f";

#[derive(Default)]
pub struct FakeInstance {
    pub body: Value,
    pub files: Vec<String>,
    pub running: bool,
    /// Its ports are published.
    pub published: bool,
    pub has_run: bool,
    /// The engine has made its disk.
    pub complete: bool,
    /// The member that has it, the driver's own if empty.
    pub location: String,
    /// The first id of its range.
    pub base: u64,
}

/// A member that has the image, and carries out operations at once.
#[derive(Default)]
pub struct Fake {
    pub instances: RefCell<BTreeMap<String, FakeInstance>>,
    /// The networks of owners.
    pub networks: RefCell<BTreeMap<String, FakeNetwork>>,
    /// Whether the node is in OVN mode.
    pub ovn: bool,
    /// The result of the last operation.
    pub ended: RefCell<Value>,
    pub calls: Cell<usize>,
    /// The call that breaks, and whether the engine has done its work then.
    pub break_at: Cell<Option<(usize, bool)>>,
    /// The engine is killed in this call.
    pub dies: Cell<bool>,
    /// The next creation leaves an instance without a disk.
    pub dies_in_creation: Cell<bool>,
    /// An operation on all instances goes on.
    pub operating: Cell<bool>,
    /// A move goes on until the next look at the operations. Nothing has the name of its instance.
    pub moving: Cell<bool>,
    /// The engine lacks something else that a move needs.
    pub lacks_pool: Cell<bool>,
    /// The operation for which the engine refuses changes of instances.
    pub busy: Cell<Option<&'static str>>,
    /// The number of notes of the end of a start that the engine refuses because of something else.
    pub busy_notes: Cell<u32>,
    /// The number of starts.
    pub starts: Cell<u32>,
    /// The first start has removed the place of the files.
    pub files_gone: Cell<bool>,
    /// At the next choices of a range, the engine creates another instance, which gets it too.
    pub rivals: Cell<u32>,
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        let call = self.calls.replace(self.calls.get() + 1);
        let breaks = self.break_at.get().filter(|(at, _)| *at == call);
        if breaks.is_some() {
            self.break_at.set(None);
        }
        if breaks.is_some_and(|(_, done)| !done) {
            return Err(EngineError::Unreachable("no connection".into()));
        }
        self.dies.set(breaks.is_some());
        let (status, body) = self.answer(request);
        match breaks {
            Some(_) => Err(EngineError::Timeout),
            None => Ok(Response {
                status,
                headers: Vec::new(),
                // The metrics are plain text.
                body: body
                    .as_str()
                    .map_or_else(|| body.to_string(), str::to_owned)
                    .into(),
            }),
        }
    }
}

fn sync(metadata: Value) -> (u16, Value) {
    (200, json!({ "type": "sync", "metadata": metadata }))
}

fn no(status: u16, error: &str) -> (u16, Value) {
    (
        status,
        json!({ "type": "error", "error_code": status, "error": error }),
    )
}

/// The first range.
const BASE: u64 = 1_065_536;
/// The ids of a range.
const RANGE: u64 = 65_536;

impl Fake {
    /// Chooses a range for an instance of the driver's member.
    fn choose_base(&self, instances: &mut BTreeMap<String, FakeInstance>, name: &str) -> u64 {
        let others = instances.iter().filter(|(other, _)| *other != name);
        let taken: Vec<_> = others.map(|(_, one)| one.base).collect();
        let mut free = (0..).map(|nth| BASE + nth * RANGE);
        let base = free.find(|base| !taken.contains(base)).unwrap();
        if let Some(left) = self.rivals.get().checked_sub(1) {
            self.rivals.set(left);
            let body = json!({ "config": {}, "devices": {} });
            let rival = FakeInstance {
                body,
                base,
                ..FakeInstance::default()
            };
            instances.insert(format!("rival-{left}"), rival);
        }
        base
    }

    /// The range that an instance gets with a change, if it gets another one.
    fn new_base(
        &self,
        instances: &mut BTreeMap<String, FakeInstance>,
        name: &str,
        body: &Value,
    ) -> Option<u64> {
        let new = body["config"].get("security.idmap.isolated")?;
        assert!(new == "true" || new == "1", "{new}");
        let old = &instances.get(name)?.body["config"]["security.idmap.isolated"];
        (new != old).then(|| self.choose_base(instances, name))
    }

    /// Ends an operation, and tells its id.
    fn operation(&self, result: Result<(), &str>) -> (u16, Value) {
        *self.ended.borrow_mut() = match result {
            Ok(()) => json!({ "type": "sync", "metadata": { "status_code": 200 } }),
            Err(error) => json!({ "type": "error", "error_code": 500, "error": error }),
        };
        let operation = format!("/1.0/operations/{OPERATION}?project=wharf");
        (202, json!({ "type": "async", "operation": operation }))
    }

    fn answer(&self, request: &Sent) -> (u16, Value) {
        let (path, query) = request.path.split_once('?').unwrap();
        assert!(query.contains("project=wharf"), "{}", request.path);
        let segments: Vec<_> = path.trim_start_matches("/1.0/").split('/').collect();
        let body: Value = match &request.body {
            Body::Json(text) => serde_json::from_str(text).unwrap(),
            _ => Value::Null,
        };
        if let ["networks", rest @ ..] = segments.as_slice() {
            return self.network(request.method, rest, query, body);
        }
        let mut instances = self.instances.borrow_mut();
        match (request.method, segments.as_slice()) {
            (Method::Get, ["operations", OPERATION, "wait"]) => (200, self.ended.borrow().clone()),
            (Method::Get, ["images"]) => sync(json!([])),
            (Method::Get, ["operations"]) => {
                self.moving.set(false);
                let path = |name| format!("/1.0/instances/{name}?project=wharf");
                let running = json!({
                    "status_code": 103,
                    "resources": { "instances": instances.keys().map(path).collect::<Vec<_>>() },
                });
                let ended = json!({ "status_code": 200, "resources": null });
                if self.operating.get() {
                    sync(json!({ "running": [running], "success": [ended] }))
                } else {
                    sync(json!({ "success": [ended] }))
                }
            }
            (Method::Get, ["storage-pools", "default", "volumes", "container"]) => {
                let path = |name| {
                    format!(
                        "/1.0/storage-pools/default/volumes/container/{name}?project=wharf&target=m1"
                    )
                };
                let here = instances.iter().filter(|(_, one)| one.location.is_empty());
                sync(here.map(|(name, _)| path(name)).collect())
            }
            (Method::Get, ["metrics"]) => {
                let running = instances.iter().filter(|(_, one)| one.running);
                let line =
                    |name| format!("incus_procs_total{{name=\"{name}\",project=\"wharf\"}} 2\n");
                (
                    200,
                    running
                        .map(|(name, _)| line(name))
                        .collect::<String>()
                        .into(),
                )
            }
            (Method::Post, ["instances"]) => {
                let name = body["name"].as_str().unwrap().to_owned();
                if instances.contains_key(&name) {
                    return self.operation(Err(
                        "Failed: UNIQUE constraint failed: instances.project_id, instances.name",
                    ));
                }
                let eth0 = &body["devices"]["eth0"]["network"];
                if self.ovn && !self.networks.borrow().contains_key(eth0.as_str().unwrap()) {
                    return self.operation(Err("Failed loading network: Network not found"));
                }
                let complete = !self.dies_in_creation.replace(false);
                let made = FakeInstance {
                    body,
                    complete,
                    base: self.choose_base(&mut instances, &name),
                    ..FakeInstance::default()
                };
                instances.insert(name, made);
                self.operation(Ok(()))
            }
            (method, ["instances", name, rest @ ..]) => {
                let chosen = self.new_base(&mut instances, name, &body);
                let shares = shares_base(&instances, name);
                let Some(one) = instances.get_mut(*name) else {
                    return no(404, "Instance not found");
                };
                if let Some(other) = self.busy.get()
                    && matches!(method, Method::Patch | Method::Put)
                {
                    let why = format!("Instance is busy running a {other:?} operation");
                    return no(500, &why);
                }
                let is_note = body["config"]["user.wharf.start"] == "done";
                if let Some(left) = self.busy_notes.get().checked_sub(1).filter(|_| is_note) {
                    self.busy_notes.set(left);
                    return no(500, "Instance is busy running a \"update\" operation");
                }
                match (method, rest) {
                    (Method::Get, []) if self.moving.get() => no(404, "Instance not found"),
                    (Method::Get, []) => sync(details(one)),
                    (Method::Post, ["files"]) if self.files_gone.get() => no(404, "Not Found"),
                    (Method::Post, ["files"]) => {
                        let file = query.split_once("path=").unwrap().1;
                        let file = file.split('&').next().unwrap().replace("%2F", "/");
                        one.files.push(file);
                        sync(Value::Null)
                    }
                    (Method::Patch, []) => {
                        one.base = chosen.unwrap_or(one.base);
                        for part in ["config", "devices"] {
                            for (key, value) in body[part].as_object().into_iter().flatten() {
                                one.body[part][key] = value.clone();
                            }
                        }
                        sync(json!({}))
                    }
                    (Method::Put, ["state"]) => {
                        match (body["action"].as_str().unwrap(), one.running) {
                            ("start", true) => no(400, "The instance is already running"),
                            ("stop", false) => no(400, "The instance is already stopped"),
                            (action, _) => {
                                assert!(action == "stop" || one.complete, "without a disk");
                                assert!(action == "stop" || !shares, "with shared ids");
                                one.running = action == "start";
                                self.starts.set(self.starts.get() + u32::from(one.running));
                                one.published = one.running && !self.dies.get();
                                one.has_run = true;
                                self.operation(Ok(()))
                            }
                        }
                    }
                    (Method::Post, []) if self.lacks_pool.get() => {
                        no(404, "Storage pool not found")
                    }
                    (Method::Post, []) => {
                        assert!(query.contains("target=m1") && !one.running);
                        assert_eq!(body, json!({ "migration": true }));
                        one.location.clear();
                        self.operation(Ok(()))
                    }
                    (Method::Delete, []) if one.running => no(400, "Instance is running"),
                    (Method::Delete, []) => {
                        instances.remove(*name);
                        self.operation(Ok(()))
                    }
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Whether another instance of the member has the range of this one.
fn shares_base(instances: &BTreeMap<String, FakeInstance>, name: &str) -> bool {
    let Some(one) = instances.get(name) else {
        return false;
    };
    let mut others = instances.iter().filter(|(other, _)| *other != name);
    others.any(|(_, other)| (&other.location, other.base) == (&one.location, one.base))
}

fn details(one: &FakeInstance) -> Value {
    let mut config = one.body["config"].clone();
    config["volatile.idmap.base"] = one.base.to_string().into();
    if one.complete && !one.has_run {
        config["volatile.apply_template"] = "create".into();
    }
    json!({
        "config": config,
        "devices": one.body["devices"],
        "status_code": if one.running { 103 } else { 102 },
        "last_used_at": if one.has_run { "2026-11-25T01:13:46Z" } else { "1970-01-01T00:00:00Z" },
        "location": if one.location.is_empty() { "m1" } else { &one.location },
    })
}
