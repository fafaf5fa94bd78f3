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
async fn lifecycle() {
    let engine = SimulatedEngine::open(&json!({ "ready_after_ms": 30 }), None, None).unwrap();
    let (_, made) = ask(&engine, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    assert_eq!(made["phase"], "booting");
    tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().1["phase"],
        "ready"
    );
    let mut other = wanted(1);
    other["image"] = json!("y");
    assert_eq!(
        ask(&engine, Method::PUT, &of(ONE), Some(other))
            .await
            .unwrap()
            .0,
        409
    );
    let stopped = ask(&engine, Method::POST, &format!("{}/stop", of(ONE)), None)
        .await
        .unwrap();
    assert_eq!(stopped.1["phase"], "stopped");
    let again = ask(&engine, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    assert_eq!(
        again.1["phase"], "stopped",
        "ensure does not start a stopped machine"
    );
    let listed = ask(&engine, Method::GET, "/instances?installation=home", None)
        .await
        .unwrap()
        .1;
    assert_eq!(listed["rows"], json!([[ONE, [1, "stopped", null]]]));
    assert_eq!(
        ask(&engine, Method::DELETE, &of(ONE), None)
            .await
            .unwrap()
            .0,
        200
    );
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().1["phase"],
        "absent"
    );
}

#[tokio::test]
async fn room_and_addresses_run_out() {
    let capacity = json!({ "n_vcpus": 3, "mem_gib": 100, "disk_size_gib": 100 });
    let engine = SimulatedEngine::open(&json!({ "capacity": capacity }), None, None).unwrap();
    assert_eq!(
        ask(&engine, Method::PUT, &of(ONE), Some(wanted(1)))
            .await
            .unwrap()
            .0,
        200
    );
    let full = ask(&engine, Method::PUT, &of(TWO), Some(wanted(2)))
        .await
        .unwrap();
    assert_eq!(
        full,
        (
            507,
            json!({ "shortages": [{ "field": "n_vcpus", "requested": 2, "available": 1 }] })
        )
    );
    ask(&engine, Method::POST, &format!("{}/stop", of(ONE)), None)
        .await
        .unwrap();
    assert_eq!(
        ask(&engine, Method::PUT, &of(TWO), Some(wanted(1)))
            .await
            .unwrap()
            .0,
        409,
        "same address"
    );
    assert_eq!(
        ask(&engine, Method::PUT, &of(TWO), Some(wanted(2)))
            .await
            .unwrap()
            .0,
        200
    );
    let start = ask(&engine, Method::POST, &format!("{}/start", of(ONE)), None)
        .await
        .unwrap();
    assert_eq!(start.0, 507);
}

#[tokio::test]
async fn late_calls_take_effect_late() {
    let faults = json!([{ "call": "stop", "hostname": "h1", "error": "late", "after_ms": 60 }]);
    let engine = SimulatedEngine::open(&json!({ "faults": faults }), None, None).unwrap();
    ask(&engine, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    let path = format!("{}/stop", of(ONE));
    let begin = std::time::Instant::now();
    let stop = ask(&engine, Method::POST, &path, None);
    let meanwhile = async {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap()
    };
    let (stopped, meanwhile) = tokio::join!(stop, meanwhile);
    assert_eq!(stopped.unwrap().1["phase"], "stopped");
    assert!(begin.elapsed().as_millis() >= 60);
    assert_eq!(meanwhile.1["phase"], "ready");
}

#[tokio::test]
async fn scripted_faults() {
    let faults = json!([
        { "call": "ensure", "nth": 1, "error": "unreachable" },
        { "call": "ensure", "nth": 2, "error": "lost" },
        { "call": "inspect", "every": 2, "error": "error" },
        { "call": "start", "hostname": "h1", "error": "dies", "after_ms": 0 },
    ]);
    let engine = SimulatedEngine::open(
        &json!({ "faults": faults, "latency_ms": [0, 2], "seed": 7 }),
        None,
        None,
    )
    .unwrap();
    let put = || {
        ask(
            &engine,
            Method::PUT,
            "/instances/0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f",
            Some(wanted(1)),
        )
    };
    assert!(put().await.is_err());
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().1["phase"],
        "absent"
    );
    assert!(put().await.is_err());
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().0,
        500
    );
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().1["phase"],
        "ready"
    );
    ask(&engine, Method::POST, &format!("{}/stop", of(ONE)), None)
        .await
        .unwrap();
    let dead = ask(&engine, Method::POST, &format!("{}/start", of(ONE)), None)
        .await
        .unwrap();
    assert_eq!(dead.1["phase"], "stopped");
    assert!(
        SimulatedEngine::open(&json!({ "ready_after": 1 }), None, None).is_err(),
        "a misspelled setting"
    );
    assert!(
        SimulatedEngine::open(
            &json!({ "faults": [{ "call": "fly", "error": "lost" }] }),
            None,
            None
        )
        .is_err()
    );
}

#[tokio::test]
async fn a_file_keeps_machines() {
    let file = std::env::temp_dir().join(format!("wharf-simulated-{}", std::process::id()));
    let open = || SimulatedEngine::open(&Value::Null, Some(&file), None).unwrap();
    let engine = open();
    for (id, n) in [(ONE, 1), (TWO, 2)] {
        ask(&engine, Method::PUT, &of(id), Some(wanted(n)))
            .await
            .unwrap();
    }
    ask(&engine, Method::DELETE, &of(TWO), None).await.unwrap();
    ask(&engine, Method::POST, &format!("{}/stop", of(ONE)), None)
        .await
        .unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(
        ask(&engine, Method::GET, &of(ONE), None).await.unwrap().1["phase"],
        "stopped"
    );
    assert_eq!(
        ask(&engine, Method::GET, &of(TWO), None).await.unwrap().1["phase"],
        "absent"
    );
    std::fs::remove_file(&file).unwrap();
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

#[tokio::test]
async fn volumes_claim_disk_and_stay_while_a_machine_has_them() {
    let settings = json!({
        "capacity": { "n_vcpus": 8, "mem_gib": 8, "disk_size_gib": 25 }, "volume_ms": 20, "late_attach": true,
    });
    let engine = SimulatedEngine::open(&settings, None, None).unwrap();
    let volume = format!("/volumes/{TWO}");
    let wanted_volume = |size: u32| Some(json!({ "installation": "home", "size_gib": size }));
    let make = |size| ask(&engine, Method::PUT, &volume, wanted_volume(size));
    assert_eq!(make(26).await.unwrap().0, 507);
    assert_eq!(make(12).await.unwrap().1["state"], "making");
    let mut machine = wanted(1);
    machine["mounts"] = json!([{ "volume": TWO, "path": "/data", "read_only": false }]);
    let path = of(ONE);
    let make_machine = || ask(&engine, Method::PUT, &path, Some(machine.clone()));
    assert_eq!(make_machine().await.unwrap().1["phase"], "failed");
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert_eq!(make(12).await.unwrap().1["state"], "ready");
    assert_eq!(make(13).await.unwrap().0, 409);
    assert_eq!(make_machine().await.unwrap().1["phase"], "ready");
    let other = wanted(2);
    let third = "2b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
    let full = ask(&engine, Method::PUT, &of(third), Some(other)).await;
    assert_eq!(full.unwrap().0, 507);
    let unmake = || ask(&engine, Method::DELETE, &volume, None);
    assert_eq!(unmake().await.unwrap().1["state"], "in_use");
    let set = format!("{}/volumes?incarnation=1", of(ONE));
    let none = ask(&engine, Method::PUT, &set, Some(json!([]))).await;
    assert_eq!(none.unwrap().0, 200);
    let list = "/volumes?installation=home";
    let listed = ask(&engine, Method::GET, list, None).await.unwrap().1;
    assert_eq!(listed, json!({ TWO: { "state": "ready" } }));
    assert_eq!(unmake().await.unwrap().1["state"], "absent");
    let listed = ask(&engine, Method::GET, list, None).await.unwrap().1;
    assert_eq!(listed, json!({}));
}

#[tokio::test]
async fn volumes_outlive_the_process_in_a_file() {
    let file = std::env::temp_dir().join(format!("wharf-volumes-{}", std::process::id()));
    let volume = format!("/volumes/{TWO}");
    let wanted = Some(json!({ "installation": "home", "size_gib": 5 }));
    for state in ["ready", "absent"] {
        let open = || SimulatedEngine::open(&json!({}), Some(&file), None).unwrap();
        let method = if state == "ready" {
            Method::PUT
        } else {
            Method::DELETE
        };
        let answer = ask(&open(), method, &volume, wanted.clone())
            .await
            .unwrap()
            .1;
        assert_eq!(answer["state"], state);
        let listed = ask(&open(), Method::GET, "/volumes?installation=home", None).await;
        let count = listed.unwrap().1.as_object().unwrap().len();
        assert_eq!(count, usize::from(state == "ready"));
    }
    std::fs::remove_file(file).unwrap();
}

/// Takes a snapshot of a machine, and makes another machine from it.
async fn with_a_clone(settings: &Value) -> (SimulatedEngine, String) {
    let engine = SimulatedEngine::open(settings, None, None).unwrap();
    ask(&engine, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    let snapshot = format!("{}/snapshots/{SNAPSHOT}", of(ONE));
    let at = format!("{snapshot}?incarnation=1");
    let take = || ask(&engine, Method::PUT, &at, None);
    assert_eq!(take().await.unwrap().1["state"], "making");
    let mut clone = wanted(2);
    clone["source"] = json!({ "snapshot": SNAPSHOT, "instance": ONE, "incarnation": 1 });
    let path = of(TWO);
    let make = || ask(&engine, Method::PUT, &path, Some(clone.clone()));
    assert_eq!(make().await.unwrap().1["phase"], "failed");
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let ready = take().await.unwrap().1;
    assert_eq!(
        (&ready["state"], &ready["clonable"]),
        (&json!("ready"), &json!(true))
    );
    assert_eq!(make().await.unwrap().1["phase"], "ready");
    (engine, snapshot)
}

const SNAPSHOT: &str = "3c9e6679-7425-40de-944b-e07fc1f90ae7";
const SNAPSHOTS: &str = "/snapshots?installation=home";

#[tokio::test]
async fn snapshots_that_are_copies_stay_while_a_machine_needs_them() {
    let settings = json!({ "snapshots": "copied", "snapshot_ms": 20, "restore_ms": 20 });
    let (engine, snapshot) = with_a_clone(&settings).await;
    let dropped = || ask(&engine, Method::DELETE, &snapshot, None);
    assert_eq!(dropped().await.unwrap().1["state"], "in_use");
    ask(&engine, Method::DELETE, &of(TWO), None).await.unwrap();
    let restore = format!("{}/restore/{SNAPSHOT}?incarnation=1", of(ONE));
    let size = json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10 });
    let restored = || ask(&engine, Method::POST, &restore, Some(size.clone()));
    assert_eq!(restored().await.unwrap().0, 409);
    ask(&engine, Method::POST, &format!("{}/stop", of(ONE)), None)
        .await
        .unwrap();
    assert_eq!(restored().await.unwrap().1["phase"], "growing");
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert_eq!(restored().await.unwrap().1["phase"], "stopped");
    assert_eq!(dropped().await.unwrap().1["state"], "in_use");
    ask(&engine, Method::DELETE, &of(ONE), None).await.unwrap();
    let listed = ask(&engine, Method::GET, SNAPSHOTS, None).await.unwrap().1;
    assert_eq!(listed[SNAPSHOT]["instance"], ONE);
    assert_eq!(dropped().await.unwrap().1["state"], "absent");
}

#[tokio::test]
async fn snapshots_that_share_a_disk_go_with_their_machine() {
    let (engine, snapshot) = with_a_clone(&json!({ "snapshot_ms": 20 })).await;
    ask(&engine, Method::DELETE, &of(ONE), None).await.unwrap();
    let listed = ask(&engine, Method::GET, SNAPSHOTS, None).await.unwrap().1;
    assert_eq!(listed, json!({}));
    let dropped = ask(&engine, Method::DELETE, &snapshot, None).await;
    assert_eq!(dropped.unwrap().1["state"], "absent");
    let clone = ask(&engine, Method::GET, &of(TWO), None).await.unwrap().1;
    assert_eq!(clone["phase"], "ready");
}

#[tokio::test]
async fn snapshots_outlive_the_process_in_a_file() {
    let file = std::env::temp_dir().join(format!("wharf-snapshots-{}", std::process::id()));
    let open = || SimulatedEngine::open(&json!({}), Some(&file), None).unwrap();
    ask(&open(), Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    let at = format!("{}/snapshots/{SNAPSHOT}?incarnation=1", of(ONE));
    for (method, count) in [(Method::PUT, 1), (Method::DELETE, 0)] {
        ask(&open(), method, &at, None).await.unwrap();
        let listed = ask(&open(), Method::GET, SNAPSHOTS, None).await.unwrap().1;
        assert_eq!(listed.as_object().unwrap().len(), count);
    }
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn the_content_of_a_snapshot_starts_elsewhere_for_the_first_time() {
    let settings = json!({ "content": true, "snapshots": "shared", "ready_after_ms": 0 });
    let open = || SimulatedEngine::open(&settings, None, None).unwrap();
    let (old, new) = (open(), open());
    let taken = format!("{}/snapshots/{TWO}", of(ONE));
    let absent = ask(&old, Method::GET, &taken, None).await.unwrap();
    assert_eq!(absent.1["state"], "absent");
    ask(&old, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    ask(&old, Method::PUT, &taken, None).await.unwrap();
    let (status, content) = ask(&old, Method::GET, &taken, None).await.unwrap();
    assert_eq!((status, &content["state"]), (200, &json!("ready")));
    let post = async |verb: &str, method, body| {
        let path = format!("{}/{verb}", of(ONE));
        let (status, answer) = ask(&new, method, &path, Some(body)).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let fetched = post("fetch", Method::POST, wanted(1)).await;
    assert_eq!(fetched["phase"], "elsewhere");
    post("content", Method::PUT, content).await;
    for (call, method) in [("fetch", Method::POST), ("start", Method::POST)] {
        assert_eq!(post(call, method, wanted(1)).await["phase"], "creating");
    }
    let id = uuid::Uuid::try_parse(ONE).unwrap();
    let content_of = new.own.world().machine(id).unwrap().content_of;
    assert_eq!(content_of.unwrap().to_string(), TWO);
    let (_, begun) = ask(&new, Method::PUT, &of(ONE), Some(wanted(1)))
        .await
        .unwrap();
    assert_eq!(begun["phase"], "ready");
}
