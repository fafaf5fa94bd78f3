//! Concurrent requests of several clients.

use crate::{Expected, running, start_under, uuid};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wharf_tests::WITHOUT_RATES;

#[test]
fn a_read_is_never_older_than_earlier_answers() {
    const RENAMES: u64 = 200;
    // The readers have their own end, in case the writer fails before it can stop them.
    let end = Instant::now() + Duration::from_secs(120);
    let (_server, api) = start_under(WITHOUT_RATES, "");
    let created = running(&api);
    let id = uuid(&created);
    let rename = |n: u64| {
        let body = json!({ "name": format!("n-{n}") });
        api.patch(id, &body).is(200);
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
}
