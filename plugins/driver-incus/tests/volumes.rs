//! No call of `make` removes a volume that may have content.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use driver_incus::context::Context;
use driver_incus::volumes;
use serde_json::{Value, json};
use std::cell::RefCell;
use wharf_guest::fake::{Host, Http, Method, Sent};
use wharf_guest::{EngineError, Error, Node, Response, Volume, VolumeReport, VolumeState};

const FILE: &str = include_str!("../requests.toml");

/// A member that has the volume with this configuration, and whose pool shows this usage of it.
struct Fake {
    found: Option<Value>,
    usage: Value,
    /// The methods of requests.
    sent: RefCell<Vec<Method>>,
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        self.sent.borrow_mut().push(request.method);
        let (mut status, mut kind) = (200, "sync");
        let metadata = match request.name.as_str() {
            "use-of-volume" => json!({ "usage": self.usage }),
            "server" => json!({ "api_extensions": ["storage_initial_owner"] }),
            "pool" => json!({ "driver": "btrfs" }),
            "read-volume" => match &self.found {
                Some(config) => json!({ "config": config }),
                None => {
                    (status, kind) = (404, "error");
                    Value::Null
                }
            },
            _ => Value::Null,
        };
        Ok(Response {
            status,
            headers: Vec::new(),
            body: json!({ "type": kind, "error": "not found", "metadata": metadata })
                .to_string()
                .into(),
        })
    }
}

/// Makes the volume, and returns the methods of the requests too.
fn make(found: Option<Value>, usage: Value) -> (Result<VolumeReport, Error>, Vec<Method>) {
    let fake = Fake {
        found,
        usage,
        sent: RefCell::default(),
    };
    let node = Node {
        name: "n1".into(),
        installation: "11111111-2222-4333-8444-555555555555".into(),
        settings:
            r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9"}"#
                .into(),
        hint: String::new(),
    };
    let volume = Volume {
        id: "00000000-0000-4000-8000-000000000001".into(),
        size_gib: 2,
        fetched: false,
    };
    let host = Host::make(FILE, &node, &volume, &[], &fake);
    let report = volumes::make(&Context::new(&node, &host).unwrap(), &volume);
    (report, fake.sent.take())
}

fn made(usage: Value) -> VolumeState {
    let (report, sent) = make(Some(json!({ "size": "2GiB" })), usage);
    let report = report.unwrap();
    assert!(report.again_ms.is_none());
    assert!(sent.iter().all(|one| *one == Method::Get), "{sent:?}");
    report.state
}

#[test]
fn a_volume_that_the_engine_has_is_kept() {
    assert!(matches!(made(json!({ "used": 1024 })), VolumeState::Ready));
    let VolumeState::Failed(why) = made(Value::Null) else {
        panic!("the volume counts as made");
    };
    assert!(why.contains("shows no content"), "{why}");
}

#[test]
fn a_volume_whose_creation_was_interrupted_is_made_again() {
    // The engine gives the owner last.
    let left = json!({ "size": "2GiB", "user.wharf.incomplete": "true" });
    for usage in [json!({ "used": 0 }), Value::Null] {
        let (report, sent) = make(Some(left.clone()), usage);
        assert!(matches!(report, Err(Error::RetryLater(_))), "{report:?}");
        assert_eq!(sent, [Method::Get, Method::Delete]);
    }
}

#[test]
fn a_new_volume_is_ready_once_the_pool_counts_its_content() {
    let (report, sent) = make(None, json!({ "used": 1024 }));
    assert!(matches!(report.unwrap().state, VolumeState::Ready));
    assert!(sent.ends_with(&[Method::Post, Method::Get, Method::Patch]));
    let (report, sent) = make(None, Value::Null);
    assert!(matches!(report.unwrap().state, VolumeState::Failed(_)));
    assert!(!sent.contains(&Method::Patch));
}
