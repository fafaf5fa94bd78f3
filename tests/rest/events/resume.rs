//! Many clients, and a server that is killed.

use super::{Stream, page, start_roomy};
use crate::hygiene::resident_kib;
use crate::{until_true, until_used, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wharf_tests::{Api, Server, metric, small, until};

/// Clients that follow at once.
const CLIENTS: usize = 100;
/// The events of an hour with one event in each second.
const HOUR: u64 = 3_600;
/// Instances that are created and deleted; each causes at least three events.
const MADE: usize = 1_200;

/// Memory by which the server may grow meanwhile, its caches included. The events that the clients get
/// are more.
const MORE_MIB: u64 = 100;

/// Creates and deletes instances with several clients. Failures are those of a killed server.
fn churn(api: &(impl Fn() -> Api + Sync), made: usize, over: &AtomicBool) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..made / 8 {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let now = api();
                    match now.create(&small("container")) {
                        Ok(created) if created.status == 201 => {
                            let _ = now.delete(created.body["uuid"].as_str().unwrap());
                        }
                        // The server is down for a moment.
                        _ => drop(until("the server is back", || {
                            let back = over.load(Ordering::Relaxed) || is_up(&api());
                            Ok(back.then_some(()))
                        })),
                    }
                }
            });
        }
    });
}

fn is_up(api: &Api) -> bool {
    api.get("/healthz").is_ok_and(|answer| answer.status == 200)
}

/// Waits until this many instances were made since the start of the server.
fn made(api: &Api, count: usize) {
    let start =
        "wharf_http_request_duration_seconds_count{method=\"POST\",route=\"/api/instance/\"";
    until_true("instances are made", || {
        metric(api, start).unwrap() >= count as f64
    });
}

/// Follows from the number 0 until `end` is reached. Returns the number of events.
fn follow(mut stream: Stream, end: &AtomicU64) -> u64 {
    assert_eq!(stream.ready(), 0);
    let mut last = 0;
    loop {
        if last > 0 && last == end.load(Ordering::SeqCst) {
            return last;
        }
        let id = stream.event()["id"].as_u64().unwrap();
        assert_eq!(id, last + 1, "in order, without gaps");
        last = id;
    }
}

/// Kills the server, and ends the load, if `body` panics. Clients in threads would wait for it forever.
fn or_kill(server: &mut Server, over: &AtomicBool, body: impl FnOnce(&mut Server)) {
    let body = AssertUnwindSafe(|| body(server));
    if let Err(panic) = catch_unwind(body) {
        over.store(true, Ordering::Relaxed);
        let _ = server.kill();
        resume_unwind(panic);
    }
}

#[test]
fn a_hundred_clients_miss_no_event_of_an_hour() {
    let mut server = start_roomy(&[]);
    let ann = server.user("ann@example.com").unwrap();
    let (over, end) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        or_kill(&mut server, &over, |server| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let stream = Stream::of(server, &ann, "?after=0");
                    scope.spawn(|| follow(stream, &end))
                })
                .collect();
            let before = resident_kib(server.process_id().unwrap()) / 1024;
            churn(&|| ann.clone(), MADE, &over);
            until_used(&ann, "n_instances", 0);
            // The last event wakes clients that have all the others already.
            let mut last = ann.get("/api/event/?limit=1000").unwrap();
            let mut after = 0;
            while let Some(id) = last
                .body
                .as_array()
                .unwrap()
                .last()
                .and_then(|e| e["id"].as_u64())
            {
                after = id;
                last = ann
                    .get(&format!("/api/event/?limit=1000&after={after}"))
                    .unwrap();
            }
            assert!(after >= HOUR, "{after}");
            end.store(after + 1, Ordering::SeqCst);
            ann.small_container().unwrap();
            for client in clients {
                assert_eq!(client.join().unwrap(), after + 1);
            }
            let now = resident_kib(server.process_id().unwrap()) / 1024;
            println!(
                "{CLIENTS} clients, {after} events: {before} MiB resident before, {now} MiB after"
            );
            assert!(now < before + MORE_MIB, "{before} MiB, then {now} MiB");
        })
    });
}

#[test]
fn clients_that_come_back_get_each_event_once_although_the_server_is_killed() {
    let mut server = start_roomy(&[]);
    let ann = server.user("ann@example.com").unwrap();
    let base_url = std::sync::Mutex::new(server.base_url().to_owned());
    let address = || base_url.lock().unwrap().clone();
    let (over, end) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let follow = || {
            let mut seen: Vec<u64> = Vec::new();
            loop {
                let last = seen.last().copied().unwrap_or_default();
                let open = || Ok(Stream::open(&address(), ann.key(), "", Some(last)).ok());
                let mut stream = wait_until("a stream", open);
                while let Some((kind, id, _)) = stream.next() {
                    match kind.as_str() {
                        "event" => seen.push(id),
                        kind => assert_eq!((kind, id), ("ready", last)),
                    }
                    if id == end.load(Ordering::SeqCst) && id > 0 {
                        return seen;
                    }
                }
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(follow)).collect();
        or_kill(&mut server, &over, |server| {
            let load = scope.spawn(|| churn(&|| ann.at(&address()), 100_000, &over));
            for _ in 0..4 {
                made(&server.again(&ann), 30);
                server.kill().unwrap();
                server.run().unwrap();
                server.base_url().clone_into(&mut base_url.lock().unwrap());
            }
            made(&server.again(&ann), 30);
            over.store(true, Ordering::Relaxed);
            load.join().unwrap();
            let api = server.again(&ann);
            wait_until("nothing happens any more", || {
                let quota = api.get("/api/quota/")?.expect(200)?;
                let idle = quota["n_instances"]["used"] == api.list()?.len();
                Ok(idle.then_some(()))
            });
            let mut last = 0;
            while let Some(event) = page(&api, &format!("?limit=1000&after={last}")).last() {
                last = event["id"].as_u64().unwrap();
            }
            end.store(last + 1, Ordering::SeqCst);
            api.small_container().unwrap();
            for client in clients {
                let seen = client.join().unwrap();
                assert!(seen.len() > 100, "{}", seen.len());
                assert_eq!(seen, (1..=last + 1).collect::<Vec<_>>());
            }
        })
    });
}
