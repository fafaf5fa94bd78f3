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
use wharf_guest::{EngineError, Node, Response, Volume, VolumeState};

const FILE: &str = include_str!("../requests.toml");

/// A member that has the volume, whose pool shows this usage.
struct Fake {
    usage: Value,
    /// The methods of requests.
    sent: RefCell<Vec<Method>>,
}

impl Http for Fake {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        self.sent.borrow_mut().push(request.method);
        let metadata = if request.path.contains("/state?") {
            json!({ "usage": self.usage })
        } else {
            json!({ "config": { "size": "2GiB" } })
        };
        Ok(Response {
            status: 200,
            headers: Vec::new(),
            body: json!({ "type": "sync", "metadata": metadata })
                .to_string()
                .into(),
        })
    }
}

fn made(usage: Value) -> VolumeState {
    let fake = Fake {
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
    };
    let host = Host::make(FILE, &node, &volume, &[], &fake);
    let report = volumes::make(&Context::new(&node, &host).unwrap(), &volume).unwrap();
    assert!(report.again_ms.is_none());
    let sent = fake.sent.take();
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
