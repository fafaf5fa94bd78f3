//! Concurrent requests of several clients.

use crate::{Expected, start, start_under, uuid};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wharf_tests::WITHOUT_RATES;

#[test]
fn concurrent_creates_share_no_port_and_no_address() {
    let (server, api) = start();
    let made: Vec<Value> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| api.small_container()))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap().unwrap())
            .collect()
    });
    for field in [
        "uuid",
        "name",
        "wan_ssh_port",
        "lan_ipv4",
        "original_service_password",
    ] {
        let distinct: std::collections::BTreeSet<_> =
            made.iter().map(|i| i[field].to_string()).collect();
        assert_eq!(distinct.len(), made.len(), "{field}");
    }
    for instance in &made {
        api.wait_for(uuid(instance), "running").unwrap();
    }
    server.finish().unwrap();
}

#[test]
fn a_read_is_never_older_than_earlier_answers() {
    const RENAMES: u64 = 200;
    // The readers have their own end, in case the writer fails before it can stop them.
    let end = Instant::now() + Duration::from_secs(120);
    let (server, api) = start_under(WITHOUT_RATES, "");
    let created = api.small_container().unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    let rename = |n: u64| {
        let path = format!("/api/instance/{id}/");
        let body = json!({ "name": format!("n-{n}") });
        api.send("PATCH", &path, &body).is(200);
    };
    let number = |instance: &serde_json::Value| -> u64 {
        let name = instance["name"].as_str().unwrap();
        name.strip_prefix("n-").unwrap().parse().unwrap()
    };
    rename(0);
    let answered = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (api, answered, done) = (api.clone(), &answered, &done);
            scope.spawn(move || {
                let mut seen = 0;
                let mut reads = 0;
                while reads < 10 || (!done.load(Ordering::SeqCst) && Instant::now() < end) {
                    let least = answered.load(Ordering::SeqCst).max(seen);
                    seen = match (reads + reader) % 2 {
                        0 => number(&api.instance(id).is(200)),
                        _ => number(&api.list().unwrap()[0]),
                    };
                    assert!(seen >= least, "{seen} was read after {least}");
                    reads += 1;
                }
            });
        }
        for n in 1..=RENAMES {
            rename(n);
            answered.store(n, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
    });
    server.finish().unwrap();
}
