//! The fake engine's copies of containers.

use super::World;
use serde_json::{Value, json};
use wharf_guest::fake::Sent;
use wharf_guest::{JobState, Response};

/// The id of the blueprint's image.
pub const ID: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// The data of each copy.
pub const COPIED: u64 = 3 << 30;

/// The engine's clock, in nanoseconds: it is 18:40:19.6.
const NOW: i64 = 1_795_804_819_600_000_000;
/// The number of events that an engine remembers.
pub const REMEMBERED: usize = 256;

/// The memory of an engine about a container.
#[derive(Debug, Clone)]
pub struct Event {
    /// In nanoseconds.
    pub time: i64,
    container: String,
    action: &'static str,
}

/// A snapshot.
#[derive(Debug, Clone)]
pub struct Image {
    pub files: Vec<String>,
    pub labels: Value,
    /// Bytes of its own data.
    pub copied: u64,
    /// Bytes of data in the snapshots below it.
    below: u64,
}

/// A copy in progress.
#[derive(Debug, Clone)]
pub struct Copy {
    container: String,
    name: String,
    labels: Value,
}

impl Image {
    /// The answer to a question about it.
    pub fn told(&self, what: &str, world: &World) -> Value {
        match what {
            "json" => json!({
                "GraphDriver": { "Name": world.storage }, "Config": { "Labels": self.labels },
            }),
            _ => {
                json!([{ "Size": self.copied }, { "Size": self.below }, { "Size": world.image_bytes }])
            }
        }
    }
}

impl World {
    /// The snapshot with this name or id.
    pub fn snapshot(&self, called: &str) -> Option<&Image> {
        let mut all = self.snapshots.iter();
        let found = all.find(|(name, _)| *name == called || self.image_id(&json!(name)) == *called);
        found.map(|(_, snapshot)| snapshot)
    }

    /// The id of an image.
    pub fn image_id(&self, name: &Value) -> String {
        let all = self.snapshots.keys();
        let mut all = all.enumerate();
        let found = all.find(|(_, known)| *name == known.as_str());
        found.map_or(ID.to_owned(), |(at, _)| format!("{at:064x}"))
    }

    /// Starts a copy, or reports its state.
    pub fn commit(&mut self, request: &Sent) -> JobState {
        let (_, query) = request.path.split_once('?').unwrap();
        let value = |key: &str| {
            let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
            let found = pairs.find(|(name, _)| *name == key);
            let text = found.unwrap().1.replace("%2F", "/").replace("%20", " ");
            text.replace("%3D", "=").replace("%3A", ":")
        };
        let done = |status: u16, message: &str| {
            JobState::Done(Response {
                status,
                headers: Vec::new(),
                body: json!({ "message": message }).to_string().into_bytes(),
            })
        };
        if let Some((status, message)) = self.copies_fail {
            return done(status, message);
        }
        if self.job {
            return match self.copy {
                Some(_) => JobState::Running(None),
                None => {
                    self.job = false;
                    done(201, "")
                }
            };
        }
        assert!(self.copy.is_none(), "a second copy beside the first one");
        assert_eq!(value("pause"), "true");
        let container = self.name_of(&value("container"));
        let held = self.containers.get_mut(&container).unwrap();
        assert!(
            !held.paused,
            "another copy lets it go on before this one ends"
        );
        held.paused = held.running;
        if held.running {
            self.happens(&container, "pause");
        }
        let changes = value("changes");
        let mut labels = self.containers[&container].body["Labels"].clone();
        labels["io.wharf.clonable"] = "1".into();
        for pair in changes.strip_prefix("LABEL ").unwrap().split(' ') {
            let (key, value) = pair.split_once('=').unwrap();
            labels[key] = value.into();
        }
        self.copy = Some(Copy {
            container,
            name: format!("{}:{}", value("repo"), value("tag")),
            labels,
        });
        self.job = true;
        JobState::Running(None)
    }

    /// Completes the copy in progress.
    pub fn finish(&mut self) {
        let copy = self.copy.take().unwrap();
        let container = &self.containers[&copy.container];
        let below = self.snapshot(container.body["Image"].as_str().unwrap());
        let below = below.map_or(0, |below| below.below + COPIED);
        let files = container.files.clone();
        let image = Image {
            files,
            labels: copy.labels,
            copied: COPIED,
            below,
        };
        self.snapshots.insert(copy.name, image);
        self.containers.get_mut(&copy.container).unwrap().paused = false;
        self.happens(&copy.container, "unpause");
    }

    /// Gives an image another name.
    pub fn tag(&mut self, name: &str, to: String) {
        let image = self.snapshots[name].clone();
        self.snapshots.insert(to, image);
    }

    /// The engine is killed in a copy.
    pub fn kill(&mut self) {
        self.copy = None;
        self.job = false;
        self.events.clear();
    }

    /// The engine remembers an event of this moment, and forgets the oldest.
    pub fn happens(&mut self, container: &str, action: &'static str) {
        if self.events.len() == REMEMBERED {
            self.events.remove(0);
        }
        self.events.push(Event {
            time: NOW - 100_000_000,
            container: container.to_owned(),
            action,
        });
    }

    /// The events up to a second, of all containers or of the pauses of one.
    pub fn remembered(&self, query: &str) -> Value {
        let (times, until) = query.rsplit_once("until=").unwrap();
        assert!(times.contains("since=0"), "{query}");
        let until = until.parse::<i64>().unwrap() * 1_000_000_000;
        let is_asked_for = |event: &&Event| {
            event.time <= until && (!query.contains("filters=") || query.contains(&event.container))
        };
        let asked_for = self.events.iter().filter(is_asked_for);
        let told = asked_for.map(|event| {
            json!({ "Type": "container", "Action": event.action, "time": event.time / 1_000_000_000 })
        });
        told.collect()
    }

    pub fn listed_snapshots(&self) -> Value {
        let foreign = [json!({ "RepoTags": null }), json!({ "RepoTags": ["x:1"] })];
        let own = self
            .snapshots
            .iter()
            .map(|(name, image)| json!({ "RepoTags": [name], "Labels": image.labels, "Size": 5 }));
        own.chain(foreign).collect()
    }

    pub fn drop_snapshot(&mut self, name: &str, query: &str) -> (u16, Value) {
        assert!(!query.contains("force"), "the data would stay for ever");
        let mut containers = self.containers.values();
        if containers.any(|container| container.body["Image"] == name) {
            return (
                409,
                json!({ "message": "container 12 is using its referenced image" }),
            );
        }
        match self.snapshots.remove(name) {
            Some(_) => (200, json!([])),
            None => (404, json!({ "message": "No such image" })),
        }
    }
}
