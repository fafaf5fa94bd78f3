//! A proof of limits writes two parts on a disk that has room for one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "a proof is about no instance of a user")]
mod sample;

use driver_incus::context::Context;
use driver_incus::limits;
use sample::{ONE, node};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use wharf_guest::fake::{Body, Host, Http, Method, Sent};
use wharf_guest::{EngineError, Error, Header, Limits, Response, Volume};

const FILE: &str = include_str!("../requests.toml");
/// The length of a part that was written in full.
const PART: u64 = 10 << 20;

/// A member with the instances of an interrupted proof.
struct Fake {
    /// The kind of its pool.
    driver: &'static str,
    /// The usage of the volume with the mark.
    usage: Value,
    /// The bytes of each part that its pool takes.
    takes: [u64; 2],
    instances: RefCell<BTreeSet<String>>,
}

impl Fake {
    fn taking(takes: [u64; 2]) -> Self {
        let name = format!("wp-55555555-{ONE}");
        Self {
            driver: "btrfs",
            usage: json!({ "used": 1024 }),
            takes,
            instances: RefCell::new([format!("{name}-copy"), name].into()),
        }
    }

    /// Answers a request, which may be about this part.
    fn answer(&self, request: &Sent, part: usize) -> (u16, Value) {
        let mut instances = self.instances.borrow_mut();
        let path = request.path.split('?').next().unwrap_or_default();
        let sync = |metadata: Value| (200, json!({ "type": "sync", "metadata": metadata }));
        let absent = (404, json!({ "type": "error", "error": "not found" }));
        match request.name.as_str() {
            "pool" => sync(json!({ "driver": self.driver })),
            "use-of-mark" => sync(json!({ "usage": self.usage })),
            "create-probe" | "copy-probe" => {
                let Body::Json(body) = &request.body else {
                    panic!("no body");
                };
                let body: Value = serde_json::from_str(body).unwrap();
                let name = body["name"].as_str().unwrap();
                assert!(instances.insert(name.to_owned()), "{name} is there");
                sync(json!({}))
            }
            // The copy lets the engine count the first part.
            "write-probe" => {
                assert_eq!(instances.len(), part + 1);
                sync(Value::Null)
            }
            "read-probe" if self.takes[part] == 0 => absent,
            "read-probe" => sync(Value::Null),
            "delete-probe" => {
                let name = path.rsplit('/').next().unwrap_or_default();
                if instances.remove(name) {
                    sync(json!({}))
                } else {
                    absent
                }
            }
            other => panic!("{other}"),
        }
    }
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        let part = usize::from(request.path.contains("second"));
        let (status, body) = self.answer(request, part);
        let length = Header {
            name: "Content-Length".into(),
            value: self.takes[part].to_string(),
        };
        let is_asked_for = request.method == Method::Head;
        Ok(Response {
            status,
            headers: is_asked_for.then_some(length).into_iter().collect(),
            body: body.to_string().into(),
        })
    }
}

fn prove(fake: &Fake) -> Result<Limits, Error> {
    let node = node();
    let volume = Volume {
        id: ONE.into(),
        size_gib: 1,
        fetched: false,
    };
    let host = Host::make(FILE, &node, &volume, &[], fake);
    limits::prove(&Context::new(&node, &host)?)
}

/// Makes a proof, which leaves no instance.
fn proven(takes: [u64; 2]) -> Result<Limits, Error> {
    let fake = Fake::taking(takes);
    let proven = prove(&fake);
    assert!(fake.instances.borrow().is_empty(), "{takes:?}");
    proven
}

#[test]
fn a_pool_that_takes_both_parts_is_broken() {
    let broken = proven([PART, PART]).unwrap();
    assert!(
        matches!(&broken, Limits::Broken(why) if why.contains("20 MiB")),
        "{broken:?}"
    );
}

#[test]
fn a_second_part_that_is_short_proves_the_limit() {
    for short in [0, 1, PART - 1] {
        let held = proven([PART, short]).unwrap();
        assert!(matches!(held, Limits::Held), "{short}: {held:?}");
    }
}

/// The pool may be full.
#[test]
fn a_first_part_that_is_short_proves_nothing() {
    for takes in [[0, 0], [PART - 1, 0], [PART - 1, PART]] {
        let unproven = proven(takes);
        assert!(
            matches!(unproven, Err(Error::Other(_))),
            "{takes:?}: {unproven:?}"
        );
    }
}

/// A new disk would enable quotas that are off, and hide that the others have lost their limits.
#[test]
fn a_pool_that_counts_no_usage_is_broken_and_gets_no_disk() {
    let fake = Fake {
        usage: Value::Null,
        ..Fake::taking([PART, 0])
    };
    let broken = prove(&fake).unwrap();
    assert!(
        matches!(&broken, Limits::Broken(why) if why.contains("counts no usage")),
        "{broken:?}"
    );
    assert_eq!(fake.instances.borrow().len(), 2);
}

#[test]
fn a_pool_that_limits_no_disks_makes_no_proof() {
    let fake = Fake {
        driver: "dir",
        ..Fake::taking([PART, PART])
    };
    let refused = prove(&fake);
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
}
