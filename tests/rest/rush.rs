//! Many creates at once.

use crate::{Expected, start_under, until_says, until_true};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wharf_tests::{roomy, simulated_node, small};

/// Most creates. The first instances run long before the last create.
const MOST: usize = 9_000;
/// Instances that must run before the creates end.
const SOME: usize = 30;

#[test]
fn a_burst_of_creates_is_provisioned_during_and_after_it() {
    let server = crate::serve(&roomy(&simulated_node("one", "")));
    let api = server.user("ann@example.com").unwrap();
    let (made, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let running = || {
        let list = api.list().unwrap();
        list.iter().filter(|i| i["state"] == "running").count()
    };
    let some_came_up = std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) && made.load(Ordering::Relaxed) < MOST {
                    api.create(&small("container")).is(201);
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let some = loop {
            let rush = made.load(Ordering::Relaxed) < MOST;
            if running() >= SOME || !rush {
                break rush;
            }
        };
        over.store(true, Ordering::Relaxed);
        some
    });
    assert!(some_came_up, "too few of {MOST} came up during the burst");
    until_true("all are running", || {
        running() == made.load(Ordering::Relaxed)
    });
}

#[test]
fn a_deletion_does_not_wait_behind_new_instances() {
    let limits = "[limits]\ncalls_per_node = 2\n";
    let (server, api) = start_under(limits, "latency_ms = 2000");
    let made: Vec<_> = (0..8).map(|_| api.small_container().unwrap()).collect();
    let last = made.last().unwrap()["uuid"].as_str().unwrap();
    api.delete(last).is(204);
    until_says(&server, &["events", last], "purged");
    let waiting = api.list().unwrap();
    let waiting = waiting.iter().filter(|i| i["state"] == "provisioning");
    assert!(waiting.count() > 2, "it waited");
}
