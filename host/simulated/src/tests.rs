//! Tests that send the driver's requests to the simulated engine.

use super::SimulatedEngine;
use super::machine::NodePort;
use http::Method;
use serde_json::{Value, json};
use wharf_engine::{EngineError, InProcessEngine as _, Outgoing};

const ONE: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const TWO: &str = "1b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";

async fn ask(
    engine: &SimulatedEngine,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<(u16, Value), EngineError> {
    let body = body.map(|body| ("application/json", body.to_string().into()));
    let outgoing = Outgoing {
        method,
        path: path.into(),
        headers: Vec::new(),
        credentials: None,
        body,
    };
    let answer = engine.send(&outgoing).await?;
    Ok((answer.status, serde_json::from_slice(&answer.body).unwrap()))
}

fn wanted(n: u8) -> Value {
    json!({
        "installation": "home", "incarnation": 1, "kind": "container", "hostname": format!("h{n}"),
        "image": "x", "address": format!("10.0.0.{n}"),
        "node_ports": [{ "address": "127.0.0.1", "port": 20000 + u32::from(n) }],
        "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 10,
    })
}

fn of(id: &str) -> String {
    format!("/instances/{id}")
}

#[tokio::test]
async fn room_and_addresses_run_out_and_a_machine_claims_no_volume_again() {
    let capacity = json!({ "n_vcpus": 8, "mem_gib": 8, "disk_size_gib": 25 });
    let engine = SimulatedEngine::open(&json!({ "capacity": capacity }), None, None).unwrap();
    let put =
        async |path: String, body| ask(&engine, Method::PUT, &path, Some(body)).await.unwrap();
    let volume = format!("/volumes/{TWO}");
    for (size_gib, status) in [(26, 507), (12, 200), (13, 409)] {
        let wanted = json!({ "installation": "home", "size_gib": size_gib });
        assert_eq!(put(volume.clone(), wanted).await.0, status, "{size_gib}");
    }
    let mut machine = wanted(1);
    machine["mounts"] = json!([{ "volume": TWO, "path": "/data", "read_only": false }]);
    assert_eq!(put(of(ONE), machine).await.0, 200);
    assert_eq!(put(of(TWO), wanted(1)).await.0, 409, "the address");
    let full = put(of(TWO), wanted(2)).await;
    let short =
        json!({ "shortages": [{ "field": "disk_size_gib", "requested": 10, "available": 3 }] });
    assert_eq!(full, (507, short));
}

#[test]
fn misspelled_settings_and_calls_are_refused() {
    for wrong in [
        json!({ "ready_after": 1 }),
        json!({ "faults": [{ "call": "fly", "error": "lost" }] }),
    ] {
        assert!(
            SimulatedEngine::open(&wrong, None, None).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn ports_of_earlier_versions_are_public() {
    let port = |written: Value| serde_json::from_value::<NodePort>(written).unwrap();
    let public = port(json!(20_001));
    assert_eq!(
        public,
        port(json!({ "address": "0.0.0.0", "port": 20_001 }))
    );
}
