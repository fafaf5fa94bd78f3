//! Settings of the simulated engine.

use crate::{start_with, uuid};
use std::time::{Duration, Instant};

#[test]
fn instances_are_ready_after_the_configured_time() {
    let (server, api) = start_with("ready_after_ms = 800");
    let begin = Instant::now();
    let created = api.small_container().unwrap();
    assert_eq!(created["state"], "provisioning");
    api.wait_for(uuid(&created), "running").unwrap();
    assert!(
        begin.elapsed() >= Duration::from_millis(800),
        "{:?}",
        begin.elapsed()
    );
    server.finish().unwrap();
}
