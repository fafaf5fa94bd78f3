//! Content that leaves or comes as an image, with calls that break at any request.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod sample;

use driver_incus::context::Context;
use driver_incus::{content, delete, snapshots};
use sample::{ONE, node, target};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use wharf_guest::fake::{Body, Host, Http, Method, Sent, Transfer};
use wharf_guest::{
    EngineError, Error, JobState, Phase, Report, Response, SnapshotReport, SnapshotState, Source,
    Spec, Target,
};

const FILE: &str = include_str!("../requests.toml");
const TWO: &str = "00000000-0000-4000-8000-000000000002";
const IMAGE: &str = "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0";
const OPERATION: &str = "/1.0/operations/00000000-0000-4000-8000-00000000000f?project=wharf";

/// An engine with one instance and one snapshot at most, and the host's transfers.
#[derive(Default)]
struct Fake {
    instance: RefCell<Option<Value>>,
    /// The properties of the image.
    image: RefCell<Option<Value>>,
    /// The properties of an image that is being made.
    making: RefCell<Option<Value>>,
    /// An image of something else is being made, or could not be made.
    other: RefCell<Option<Value>>,
    /// The next deletion of an image finds a member down.
    is_down: Cell<bool>,
    transfer: RefCell<Option<Transfer>>,
    /// What was made of an image, or from content.
    done: RefCell<Vec<String>>,
    calls: Cell<usize>,
    /// The request that breaks, and whether the engine has done its work then.
    breaks: Cell<Option<(usize, bool)>>,
}

fn sync(metadata: Value) -> (u16, Value) {
    (200, json!({ "type": "sync", "metadata": metadata }))
}

impl Fake {
    fn answer(&self, sent: &Sent) -> (u16, Value) {
        let body: Value = match &sent.body {
            Body::Json(text) => serde_json::from_str(text).unwrap(),
            _ => Value::Null,
        };
        let absent = (404, json!({ "type": "error", "error": "not found" }));
        let begun = (202, json!({ "type": "async", "operation": OPERATION }));
        match sent.name.as_str() {
            "server" => sync(json!({ "environment": { "kernel_architecture": "x86_64" } })),
            "read-snapshot" => sync(json!({
                "size": 5,
                "config": { "image.io.wharf.clonable": "1", "user.wharf.snapshot": format!("{TWO} 5") },
            })),
            "read" => self.instance.borrow().clone().map_or(absent, sync),
            "operations" => {
                // What is under way ends soon.
                let making = self.making.borrow_mut().take();
                let running = json!({ "status_code": 103, "description": "Downloading image", "location": "m1" });
                let running = making.map(|properties| {
                    *self.image.borrow_mut() = Some(properties);
                    running
                });
                let all: Vec<_> = running
                    .into_iter()
                    .chain(self.other.borrow_mut().take())
                    .collect();
                sync(json!({ "all": all }))
            }
            "images-of-snapshot" | "images-of-instance" => {
                let image = self.image.borrow().clone().map(|properties| {
                    json!({
                        "fingerprint": IMAGE, "size": 7, "properties": properties,
                        "uploaded_at": "2026-11-28T17:00:00.5Z",
                    })
                });
                sync(image.into_iter().collect())
            }
            "publish-snapshot" | "publish" => {
                *self.making.borrow_mut() = Some(body["properties"].clone());
                begun
            }
            "delete-image" if self.is_down.take() => {
                let error = "peer node 198.51.100.2:8443 is down";
                (
                    500,
                    json!({ "type": "error", "error_code": 500, "error": error }),
                )
            }
            "delete-image" => {
                assert_eq!(sent.method, Method::Delete);
                self.image.borrow_mut().take().map_or(absent, |_| begun)
            }
            "create-fetched" => {
                assert!(self.image.borrow().is_some(), "without an image");
                let mut config = body["config"].clone();
                config["volatile.apply_template"] = "create".into();
                *self.instance.borrow_mut() = Some(json!({
                    "config": config, "devices": body["devices"], "status_code": 102,
                    "last_used_at": "1970-01-01T00:00:00Z", "location": "m1",
                }));
                begun
            }
            "delete" => self.instance.borrow_mut().take().map_or(absent, |_| begun),
            "drop-snapshot" => begun,
            "wait" => sync(json!({ "status_code": 200 })),
            "disks" => sync(json!([])),
            other => panic!("{other}"),
        }
    }
}

impl Http for Fake {
    fn send(&self, sent: &Sent) -> Result<Response, EngineError> {
        let call = self.calls.replace(self.calls.get() + 1);
        let breaks = self.breaks.get().filter(|(at, _)| *at == call);
        if breaks.is_some_and(|(_, is_done)| !is_done) {
            return Err(EngineError::Unreachable("no connection".into()));
        }
        let (status, body) = self.answer(sent);
        if breaks.is_some() {
            return Err(EngineError::Timeout);
        }
        Ok(Response {
            status,
            headers: Vec::new(),
            body: body.to_string().into(),
        })
    }

    fn begin_transfer(&self, transfer: &Transfer) -> Result<(), EngineError> {
        *self.transfer.borrow_mut() = Some(transfer.clone());
        Ok(())
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        let ended = self.transfer.borrow_mut().take();
        Ok(ended.map(|transfer| {
            if let Some(read) = transfer.read {
                assert!(self.image.borrow().is_some(), "without an image");
                self.done.borrow_mut().push(read);
            } else {
                let name = format!("wh-55555555-{ONE}-1");
                *self.making.borrow_mut() = Some(json!({ "wharf.content": name }));
                self.done.borrow_mut().push(transfer.write.unwrap());
            }
            JobState::Done(Response {
                status: 200,
                headers: Vec::new(),
                body: b"{}".to_vec(),
            })
        }))
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        self.transfer.borrow_mut().take();
        Ok(())
    }
}

fn spec(fetched: bool) -> Spec {
    Spec {
        fetched,
        published: Vec::new(),
        ..sample::spec()
    }
}

fn source() -> Source {
    Source {
        snapshot: TWO.into(),
        instance: sample::spec().tag,
    }
}

fn send(fake: &Fake) -> Result<SnapshotReport, Error> {
    let (node, of) = (node(), source());
    let host = Host::send(FILE, &node, &of, fake);
    content::send(&Context::new(&node, &host)?, TWO)
}

fn dropped(fake: &Fake) -> Result<SnapshotReport, Error> {
    let (node, of) = (node(), source());
    let host = Host::drop(FILE, &node, &of, fake);
    snapshots::drop(&Context::new(&node, &host)?, TWO)
}

fn fetch(fake: &Fake, fetched: bool) -> Result<Report, Error> {
    let (node, spec) = (node(), spec(fetched));
    let host = Host::create(FILE, &node, &spec, fake);
    content::fetch(&Context::new(&node, &host)?, &spec)
}

fn change(
    fake: &Fake,
    call: impl FnOnce(&Context, &Target) -> Result<Report, Error>,
) -> Result<Report, Error> {
    let (node, target) = (node(), target());
    let host = Host::change(FILE, &node, &target, fake);
    call(&Context::new(&node, &host)?, &target)
}

/// Repeats calls until one of them is the last one.
fn repeated<T>(mut call: impl FnMut() -> Result<T, Error>, is_last: impl Fn(&T) -> bool) -> T {
    for _ in 0..20 {
        match call() {
            Ok(report) if is_last(&report) => return report,
            Ok(_) | Err(Error::RetryLater(_) | Error::Unreachable(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("no end")
}

/// Fakes without a break, and with one at each request.
fn fakes() -> impl Iterator<Item = Fake> {
    let breaks = (0..30).flat_map(|at| [Some((at, false)), Some((at, true))]);
    breaks.chain([None]).map(|breaks| {
        let fake = Fake::default();
        fake.breaks.set(breaks);
        fake
    })
}

#[test]
fn a_snapshot_is_sent_and_leaves_no_image() {
    for fake in fakes() {
        let is_ready = |report: &SnapshotReport| matches!(&report.state, SnapshotState::Ready(of) if of.bytes == 5);
        repeated(|| send(&fake), is_ready);
        let read = format!("/1.0/images/{IMAGE}/export?project=wharf");
        assert_eq!(fake.done.borrow().first(), Some(&read));
        repeated(
            || dropped(&fake),
            |report| matches!(report.state, SnapshotState::Absent),
        );
        assert!(fake.image.borrow().is_none() && fake.making.borrow().is_none());
    }
}

#[test]
fn a_snapshot_that_goes_takes_an_image_with_it_that_is_being_made() {
    let fake = Fake::default();
    send(&fake).unwrap();
    assert!(fake.making.borrow().is_some());
    assert!(matches!(dropped(&fake), Err(Error::RetryLater(_))));
    repeated(
        || dropped(&fake),
        |report| matches!(report.state, SnapshotState::Absent),
    );
    assert!(fake.image.borrow().is_none() && fake.making.borrow().is_none());
}

#[test]
fn an_image_is_deleted_once_all_members_are_up() {
    let fake = Fake::default();
    // The image is made, and the transfer of it begins.
    send(&fake).unwrap();
    send(&fake).unwrap();
    assert!(fake.image.borrow().is_some());
    fake.is_down.set(true);
    assert!(matches!(dropped(&fake), Err(Error::RetryLater(_))));
    assert!(fake.image.borrow().is_some());
    dropped(&fake).unwrap();
    assert!(fake.image.borrow().is_none());
}

#[test]
fn other_images_are_waited_for_and_a_failure_is_told() {
    let fake = Fake::default();
    let other = |code: u16, location: &str| {
        json!({
            "status_code": code, "description": "Downloading image", "location": location,
            "err": "no space left on device",
        })
    };
    *fake.other.borrow_mut() = Some(other(103, "m1"));
    send(&fake).unwrap();
    assert!(fake.making.borrow().is_none(), "beside another image");
    *fake.other.borrow_mut() = Some(other(400, "m1"));
    let error = send(&fake).unwrap_err();
    assert!(format!("{error:?}").contains("no space left"), "{error:?}");
    *fake.other.borrow_mut() = Some(other(103, "m2"));
    send(&fake).unwrap();
    assert!(fake.making.borrow().is_some(), "behind another member");
}

#[test]
fn content_becomes_an_instance_that_has_run_or_has_not() {
    for fetched in [true, false] {
        for fake in fakes() {
            let is_last = |report: &Report| !matches!(report.phase, Phase::Elsewhere(_));
            let report = repeated(|| fetch(&fake, fetched), is_last);
            if fetched {
                assert!(matches!(report.phase, Phase::Creating), "{report:?}");
            } else {
                assert!(matches!(report.phase, Phase::Stopped(None)), "{report:?}");
            }
            assert!(fake.image.borrow().is_none(), "its image is left");
            let instance = fake.instance.borrow().clone().unwrap();
            assert_eq!(instance["config"]["user.wharf.base"], "7");
            assert_eq!(*fake.done.borrow(), ["/1.0/images?project=wharf"]);
        }
    }
}

#[test]
fn an_instance_comes_although_a_member_is_down_and_takes_its_image_with_it() {
    let fake = Fake::default();
    let is_last = |report: &Report| !matches!(report.phase, Phase::Elsewhere(_));
    repeated(
        || {
            fake.is_down.set(true);
            fetch(&fake, true)
        },
        is_last,
    );
    assert!(fake.image.borrow().is_some());
    fake.is_down.set(false);
    let is_gone = |report: &Report| matches!(report.phase, Phase::Absent);
    repeated(|| change(&fake, delete::delete), is_gone);
    assert!(fake.image.borrow().is_none());
}

#[test]
fn an_instance_that_is_deleted_while_its_content_comes_leaves_no_image() {
    let is_gone = |report: &Report| matches!(report.phase, Phase::Absent);
    for calls in 1..6 {
        let fake = Fake::default();
        for _ in 0..calls {
            fetch(&fake, true).unwrap();
        }
        repeated(|| change(&fake, delete::delete), is_gone);
        assert!(fake.instance.borrow().is_none() && fake.transfer.borrow().is_none());
        assert!(fake.image.borrow().is_none() && fake.making.borrow().is_none());
    }
}

#[test]
fn an_image_from_before_the_last_start_is_not_offered() {
    let stopped = |last: &str| {
        json!({
            "config": {
                "user.wharf.installation": "11111111-2222-4333-8444-555555555555",
                "image.io.wharf.clonable": "1",
            },
            "status_code": 102, "last_used_at": last, "location": "m1",
        })
    };
    let is_stopped = |report: &Report| matches!(report.phase, Phase::Stopped(None));
    for fake in fakes() {
        *fake.instance.borrow_mut() = Some(stopped("2026-11-28T16:59:59Z"));
        repeated(|| change(&fake, content::offer), is_stopped);
        let offered = fake
            .transfer
            .borrow_mut()
            .take()
            .and_then(|offer| offer.read);
        let read = format!("/1.0/images/{IMAGE}/export?project=wharf");
        assert_eq!(offered, Some(read));
        fake.breaks.set(None);
        *fake.instance.borrow_mut() = Some(stopped("2026-11-28T17:00:01.7Z"));
        assert!(change(&fake, content::offer).is_err());
        assert!(fake.image.borrow().is_none() && fake.transfer.borrow().is_none());
    }
}
