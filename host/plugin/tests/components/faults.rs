//! A faulty plugin fails one call and nothing else.

use crate::{Scratch, node, spec};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use wharf_domain::driver::{NodeHealth, Phase, PluginError};
use wharf_plugin::{CallLimits, NodeDriver, Plugins};

const LIMITS: CallLimits = CallLimits {
    memory: 16 << 20,
    cpu: Duration::from_millis(300),
    wall: Duration::from_millis(1500),
    guests: 32,
};

/// The faulty driver, which `cargo xtask test` builds.
pub fn component() -> PathBuf {
    crate::target().join("plugins/wasm32-wasip2/test-plugin/faulty_driver.wasm")
}

async fn faulty(scratch: &Scratch) -> Plugins {
    std::fs::copy(component(), scratch.0.join("plugins/driver-faulty.wasm")).unwrap();
    Plugins::load(scratch.config(LIMITS)).await.unwrap()
}

fn driver(plugins: &Plugins, mode: &str) -> NodeDriver {
    node(
        plugins,
        "faulty",
        "unix:///nowhere/engine.sock",
        json!({ "mode": mode }),
    )
}

async fn probe(plugins: &Plugins, mode: &str) -> Result<NodeHealth, PluginError> {
    driver(plugins, mode).probe().await
}

async fn fault(plugins: &Plugins, mode: &str) -> String {
    match probe(plugins, mode).await {
        Err(PluginError::Fault(why)) => why,
        other => panic!("{mode}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_call_ends_and_the_next_is_good() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let started = Instant::now();
    for (mode, says) in [
        ("spin", "300 ms of CPU time"),
        ("wait", "no answer within 1500 ms"),
        ("hog", "more than 16 MiB of memory"),
        ("panic", "on purpose"),
        ("huge", ""),
    ] {
        let why = fault(&plugins, mode).await;
        assert!(why.contains(says), "{mode}: {why}");
        assert!(!why.contains("/host/src"), "{why}");
        assert_eq!(probe(&plugins, "well").await.unwrap().version, "well");
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(probe(&plugins, "chatter").await.unwrap().version, "well");
}

#[tokio::test]
async fn a_probe_leaves_a_hint_for_later_calls_on_its_node() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let (one, other) = (driver(&plugins, "hint"), driver(&plugins, "hint"));
    for given in ["0", "1023"] {
        assert_eq!(one.probe().await.unwrap().version, given);
    }
    // 1,025 bytes are refused; the earlier text stays.
    for _ in 0..2 {
        let Err(PluginError::Fault(why)) = one.probe().await else {
            panic!("too long a hint was taken");
        };
        assert!(
            why.contains("a probe cache of 1025 bytes; at most 1024"),
            "{why}"
        );
    }
    assert_eq!(other.probe().await.unwrap().version, "0");
}

#[tokio::test]
async fn a_hint_does_not_outlive_contact_with_the_engine() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let socket = scratch.0.join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let endpoint = format!("unix://{}", socket.display());
    let driver = node(&plugins, "faulty", &endpoint, json!({ "mode": "hint" }));
    let engine = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        while connection.read(&mut request).await.unwrap() > 0 {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
            connection.write_all(answer).await.unwrap();
        }
    });
    for given in ["0", "1023"] {
        assert_eq!(driver.probe().await.unwrap().version, given);
    }
    engine.abort();
    let lost = async {
        while driver.interruptions() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let noticed = tokio::time::timeout(Duration::from_secs(20), lost).await;
    noticed.expect("contact was lost, and nobody noticed");
    assert_eq!(driver.probe().await.unwrap().version, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_guests_hold_nobody_up() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let waiting = driver(&plugins, "wait");
    let waits: Vec<_> = (0..8)
        .map(|_| {
            let waiting = waiting.clone();
            tokio::spawn(async move { waiting.probe().await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let started = Instant::now();
    probe(&plugins, "well").await.unwrap();
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    for wait in waits {
        assert!(matches!(wait.await.unwrap(), Err(PluginError::Fault(_))));
    }
}

#[tokio::test]
async fn there_is_no_way_out() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let escape = probe(&plugins, "escape").await.unwrap().version;
    assert_eq!(
        escape,
        "[false, false, false, false, false, false, false, false]"
    );
    let roam = probe(&plugins, "roam").await.unwrap().version;
    assert!(
        roam.starts_with("0 passed, ") && roam.contains("Refused"),
        "{roam}"
    );
}

#[tokio::test]
async fn nonsense_is_caught() {
    let scratch = Scratch::new();
    let plugins = faulty(&scratch).await;
    let driver = driver(&plugins, "well");
    let stale = driver.start(&spec(1).target).await.unwrap_err();
    assert!(matches!(stale, PluginError::Fault(why) if why.contains("generation")));
    let list = driver.list().await.unwrap();
    assert_eq!(list.len(), 1);
    let Phase::Failed(why) = &list[0].phase else {
        panic!("{list:?}")
    };
    assert!(why.len() <= 1000 && !why.contains(char::is_control));
    let PluginError::Other(why) = driver.stats(list[0].tag, true).await.unwrap_err() else {
        panic!()
    };
    assert!(why.len() <= 1000 && !why.contains('\0'));
}
