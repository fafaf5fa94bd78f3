//! The volume that marks the engine's store.

use super::{ask, scope};
use crate::Body;
use serde_json::{Value, json};
use wharf_requests::CallScope;

fn volume() -> Value {
    json!({
        "Name": "wharf-home",
        "Labels": { "io.wharf.installation": "home", "io.wharf.mark": "m-1" },
    })
}

fn creates(scope: &CallScope, body: &Value) -> bool {
    let body = Body::Json(body.to_string());
    ask(scope, "POST", "/volumes/create", body).is_ok()
}

#[test]
fn only_the_mark_of_the_call_is_made_and_only_the_own_volume_is_read() {
    let marks = CallScope::mark("home", "m-1");
    assert!(creates(&marks, &volume()));
    for (pointer, value) in [
        ("/Name", json!("postgres")),
        ("/Name", json!("wharf-other")),
        ("/Labels/io.wharf.installation", json!("other")),
        ("/Labels/io.wharf.mark", json!("m-2")),
        ("/Driver", json!("nfs")),
        (
            "/DriverOpts",
            json!({ "type": "none", "o": "bind", "device": "/" }),
        ),
        ("/ClusterVolumeSpec", json!({})),
        ("/Labels/x", json!("y")),
    ] {
        let mut body = volume();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap();
        parent[key] = value;
        assert!(!creates(&marks, &body), "{pointer}");
    }
    for missing in ["Name", "Labels"] {
        let mut body = volume();
        body.as_object_mut().unwrap().remove(missing);
        assert!(!creates(&marks, &body), "{missing}");
    }
    let reads = CallScope::node("home");
    assert!(!creates(&reads, &volume()) && !creates(&scope(), &volume()));
    let get = |path: &str| ask(&reads, "GET", path, Body::Empty).is_ok();
    assert!(get("/volumes/wharf-home"));
    assert!(!get("/volumes") && !get("/volumes/postgres"));
    for method in ["DELETE", "PUT"] {
        assert!(ask(&marks, method, "/volumes/wharf-home", Body::Empty).is_err());
    }
    assert!(ask(&marks, "POST", "/volumes/prune", Body::Empty).is_err());
}
