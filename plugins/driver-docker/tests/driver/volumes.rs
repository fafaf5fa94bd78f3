//! Volumes on an engine that loses calls and answers, or does not hold sizes.

use crate::fake::given::node;
use driver_docker::context::Context;
use driver_docker::volumes;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use wharf_guest::fake::{Body, Host, Http, Sent};
use wharf_guest::{EngineError, Error, Limits, Response, Volume, VolumeReport, VolumeState};

const FILE: &str = include_str!("../../requests.toml");
const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const LAYER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const IMAGE: &str = "localhost/wharf/base:1";
/// An image that cannot hold a volume.
const BARE: &str = "localhost/team/bare:1";

/// An engine with one volume at most.
#[derive(Default)]
struct Engine {
    holder: RefCell<Option<Value>>,
    volume: RefCell<Option<Value>>,
    has_run: Cell<bool>,
    /// Whether it holds the size of a disk.
    holds: bool,
    in_use: bool,
    /// Whether the engine was killed in a start of its holder.
    half_started: Cell<bool>,
    /// An image without a shell.
    shell_less: bool,
    /// An image without `fallocate`.
    tool_less: bool,
    /// A disk on XFS.
    xfs: bool,
    calls: Cell<usize>,
    /// The call that fails, and whether the engine has done its work then.
    fails: Option<(usize, bool)>,
}

impl Engine {
    fn holding() -> Self {
        Self {
            holds: true,
            ..Self::default()
        }
    }

    /// The image of the holder.
    fn image(&self) -> Value {
        let holder = self.holder.borrow();
        holder
            .as_ref()
            .map_or(Value::Null, |held| held["Image"].clone())
    }

    fn answer(&self, request: &Sent) -> (u16, Value) {
        let sent = || match &request.body {
            Body::Json(text) => serde_json::from_str(text).unwrap(),
            _ => Value::Null,
        };
        let none = |what: &str| (404, json!({ "message": format!("no such {what}") }));
        let holder = self.holder.borrow().clone();
        match (request.name.as_str(), holder) {
            ("info", _) if self.xfs => (
                200,
                json!({ "Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "xfs"]] }),
            ),
            ("info" | "read-root", _) => (
                200,
                json!({ "Driver": "btrfs", "DockerRootDir": "/var/lib/docker" }),
            ),
            ("read-volume", _) => match &*self.volume.borrow() {
                Some(made) => {
                    let parts = json!({ "Labels": made["Labels"], "Options": made["DriverOpts"] });
                    (200, parts)
                }
                None => none("volume"),
            },
            ("read-holder", Some(held)) => {
                let status = if self.has_run.get() {
                    "exited"
                } else {
                    "created"
                };
                let parts = json!({ "Config": { "Labels": held["Labels"] }, "State": { "Status": status } });
                (200, parts)
            }
            ("start-holder", Some(_)) if self.half_started.get() => (
                500,
                json!({ "message": "task 0ae4: already exists: unknown" }),
            ),
            ("start-holder", Some(held)) if self.shell_less && held["Image"] == BARE => (
                400,
                json!({ "message": "OCI runtime create failed: exec: \"/bin/sh\": stat /bin/sh: no such file" }),
            ),
            ("read-layers", _) => (200, json!([{ "Size": 300 << 20 }])),
            ("create-holder", None) => {
                *self.holder.borrow_mut() = Some(sent());
                (201, json!({ "Id": LAYER }))
            }
            ("create-holder", Some(_)) => (409, json!({ "message": "Conflict." })),
            ("start-holder", Some(_)) => {
                self.has_run.set(true);
                (204, Value::Null)
            }
            ("wait-for-holder", Some(_)) => (200, json!({ "StatusCode": 0 })),
            ("create-volume", _) => {
                // An existing one stays as it is.
                let mut volume = self.volume.borrow_mut();
                volume.get_or_insert_with(sent);
                (201, json!({}))
            }
            ("delete-volume", _) if self.in_use => {
                (409, json!({ "message": "volume is in use - [1]" }))
            }
            ("delete-volume", _) => match self.volume.borrow_mut().take() {
                Some(_) => (204, Value::Null),
                None => none("volume"),
            },
            ("delete-holder", Some(_)) => {
                self.holder.borrow_mut().take();
                self.has_run.set(false);
                self.half_started.set(false);
                (204, Value::Null)
            }
            ("ping", _) => (200, Value::Null),
            ("version", _) => (200, json!({ "Version": "20.10.24", "ApiVersion": "1.41" })),
            (_, None) => none("container"),
            (other, _) => panic!("{other}"),
        }
    }
}

impl Http for Engine {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        let nth = self.calls.get();
        self.calls.set(nth + 1);
        let fails = self.fails.filter(|(call, _)| *call == nth);
        if let Some((_, false)) = fails {
            return Err(EngineError::Timeout);
        }
        let place = format!("\u{1}73 47 0:39 /btrfs/subvolumes/{LAYER} / rw - btrfs\n");
        let proof = self.holder.borrow().as_ref().is_some_and(|held| {
            let command = held["Entrypoint"][2].as_str();
            command.is_some_and(|command| command.contains("wharf-limits"))
        });
        let (status, body) = match request.name.as_str() {
            "read-place" if proof => {
                let held = self.holds && self.image() != BARE;
                let word = if held { "held" } else { "broken" };
                (200, format!("wharf-limits-{word}\n").into_bytes())
            }
            "read-place" if self.tool_less && self.image() == BARE => (200, Vec::new()),
            "read-place" if self.has_run.get() && self.holds => (200, place.into_bytes()),
            "read-place" => (200, Vec::new()),
            _ => {
                let (status, body) = self.answer(request);
                (status, body.to_string().into_bytes())
            }
        };
        if fails.is_some() {
            return Err(EngineError::Timeout);
        }
        let headers = Vec::new();
        Ok(Response {
            status,
            headers,
            body,
        })
    }
}

fn make(engine: &Engine, size_gib: u32) -> Result<VolumeReport, Error> {
    make_from(engine, size_gib, &[IMAGE])
}

fn make_from(engine: &Engine, size_gib: u32, images: &[&str]) -> Result<VolumeReport, Error> {
    let node = node("{}");
    let images: Vec<String> = images.iter().map(|image| (*image).to_owned()).collect();
    let volume = Volume {
        id: ID.to_owned(),
        size_gib,
        fetched: false,
    };
    let host = Host::make(FILE, &node, &volume, &images, engine);
    volumes::make(&Context::new(&node, &host)?, &volume, &images)
}

fn unmake(engine: &Engine) -> Result<VolumeReport, Error> {
    let node = node("{}");
    let host = Host::unmake(FILE, &node, ID, engine);
    volumes::unmake(&Context::new(&node, &host)?)
}

fn prove(engine: &Engine, settings: &str, images: &[&str]) -> Result<Limits, Error> {
    let node = node(settings);
    let images: Vec<String> = images.iter().map(|image| (*image).to_owned()).collect();
    let volume = Volume {
        id: ID.to_owned(),
        size_gib: 1,
        fetched: false,
    };
    let host = Host::make(FILE, &node, &volume, &images, engine);
    volumes::prove(&Context::new(&node, &host)?, &images)
}

#[test]
fn a_node_is_broken_only_if_no_image_proves_the_contrary() {
    let engine = Engine::holding();
    let proven = prove(&engine, "{}", &[BARE, IMAGE]).unwrap();
    assert!(matches!(proven, Limits::Held), "{proven:?}");
    let Limits::Broken(why) = prove(&engine, "{}", &[BARE]).unwrap() else {
        panic!("it is held");
    };
    assert!(why.contains(BARE), "{why}");
    let proven = prove(&Engine::default(), "{}", &[BARE, IMAGE]).unwrap();
    assert!(matches!(proven, Limits::Broken(_)), "{proven:?}");
    assert!(engine.holder.borrow().is_none());
}

#[test]
fn xfs_makes_no_proof() {
    let engine = Engine {
        xfs: true,
        ..Engine::holding()
    };
    let proven = prove(&engine, r#"{"disk_limit":"on"}"#, &[IMAGE]);
    assert!(matches!(proven, Err(Error::Unsupported(_))), "{proven:?}");
}

#[test]
fn make_and_unmake_complete_after_any_failed_call() {
    for is_done in [false, true] {
        for call in 0.. {
            let mut engine = Engine {
                fails: Some((call, is_done)),
                ..Engine::holding()
            };
            let first = make(&engine, 20);
            let reached = engine.calls.get() > call;
            if first.is_err() {
                assert!(matches!(
                    make(&engine, 20).unwrap().state,
                    VolumeState::Ready
                ));
            }
            let made = engine.volume.borrow().clone().unwrap();
            let device = format!("/var/lib/docker/btrfs/subvolumes/{LAYER}/volume");
            assert_eq!(made["DriverOpts"]["device"], device);
            engine.calls.set(0);
            if unmake(&engine).is_err() {
                assert!(matches!(
                    unmake(&engine).unwrap().state,
                    VolumeState::Absent
                ));
            }
            assert!(engine.holder.get_mut().is_none() && engine.volume.get_mut().is_none());
            if !reached {
                break;
            }
        }
    }
}

#[test]
fn a_volume_whose_size_would_not_hold_is_not_made() {
    let engine = Engine::default();
    assert!(matches!(make(&engine, 20), Err(Error::Unsupported(_))));
    assert!(engine.holder.borrow().is_none() && engine.volume.borrow().is_none());
}

#[test]
fn an_image_that_cannot_hold_a_volume_leaves_it_to_the_next_one() {
    let shell_less = Engine {
        shell_less: true,
        ..Engine::holding()
    };
    let tool_less = Engine {
        tool_less: true,
        ..Engine::holding()
    };
    for engine in [&shell_less, &tool_less] {
        let bare = make_from(engine, 20, &[BARE]);
        assert!(matches!(bare, Err(Error::Unsupported(_))), "{bare:?}");
        assert!(engine.holder.borrow().is_none());
        let made = make_from(engine, 20, &[BARE, IMAGE]).unwrap();
        assert!(matches!(made.state, VolumeState::Ready));
        assert_eq!(engine.image(), IMAGE);
        unmake(engine).unwrap();
    }
}

#[test]
fn an_existing_volume_is_judged_by_its_size_and_its_holder() {
    let engine = Engine::holding();
    make(&engine, 20).unwrap();
    assert!(matches!(
        make(&engine, 20).unwrap().state,
        VolumeState::Ready
    ));
    assert!(matches!(make(&engine, 21), Err(Error::Conflict(_))));
    // Its content is gone with the holder.
    engine.holder.borrow_mut().take();
    assert!(matches!(
        make(&engine, 20).unwrap().state,
        VolumeState::Failed(_)
    ));
}

#[test]
fn a_holder_whose_start_was_cut_off_is_made_again_only_if_it_is_empty() {
    let mut engine = Engine::holding();
    make(&engine, 20).unwrap();
    unmake(&engine).unwrap();
    engine.half_started.set(true);
    assert!(matches!(make(&engine, 20), Err(Error::RetryLater(_))));
    assert!(matches!(
        make(&engine, 20).unwrap().state,
        VolumeState::Ready
    ));
    // Someone removes the engine's volume by hand. The content is on the holder.
    engine.volume.borrow_mut().take();
    engine.half_started.set(true);
    assert!(make(&engine, 20).is_err());
    assert!(engine.holder.borrow().is_some());
    engine.half_started.set(false);
    // The holder tells its place no more.
    engine.holds = false;
    assert!(make(&engine, 20).is_err());
    assert!(engine.holder.borrow().is_some());
    engine.holds = true;
    assert!(matches!(
        make(&engine, 20).unwrap().state,
        VolumeState::Ready
    ));
}

#[test]
fn a_volume_in_use_keeps_its_holder() {
    let mut engine = Engine::holding();
    make(&engine, 20).unwrap();
    engine.in_use = true;
    assert!(matches!(unmake(&engine).unwrap().state, VolumeState::InUse));
    assert!(engine.holder.borrow().is_some() && engine.volume.borrow().is_some());
}
