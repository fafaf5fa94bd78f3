//! Pages of events.

use super::{ids, kinds, page};
use crate::bill::fake_clock;
use crate::{Expected, has, running, start, start_with, until_true, uuid, wait_until, walk, with};
use serde_json::{Value, json};

#[test]
fn the_events_of_all_instances_are_one_sequence_with_actors_and_names() {
    let (server, ann) = start();
    assert_eq!(page(&ann, ""), Vec::<Value>::new());
    let body = with("container", json!({ "name": "box" }));
    let created = ann.create(&body).is(201);
    ann.wait_for("box", "running").unwrap();
    ann.patch("box", &json!({ "name": "crate" })).is(200);
    ann.act("crate", "stop").is(200);
    running(&ann);
    server
        .cli(&["bill", "correct", "crate", "-0.5", "--reason", "an outage"])
        .unwrap();
    ann.delete("crate").is(204);
    let events = wait_until("the first instance is purged", || {
        let events = page(&ann, "");
        Ok(events
            .iter()
            .any(|e| e["type"] == "purged")
            .then_some(events))
    });
    assert_eq!(ids(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    let of_first: Vec<Value> = page(&ann, &format!("?instance={}", uuid(&created)));
    assert_eq!(
        kinds(&of_first),
        [
            "created",
            "ready",
            "renamed",
            "stopped",
            "released",
            "bill-corrected",
            "deleted",
            "purged"
        ]
    );
    let names: Vec<_> = of_first
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["box", "box"]);
    assert!(names[2..].iter().all(|name| *name == "crate"));
    let actors: Vec<_> = of_first
        .iter()
        .map(|e| e["actor"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        actors,
        [
            "key", "node", "key", "key", "node", "operator", "key", "node"
        ]
    );
    let key = ann.key().split('_').nth(1).unwrap();
    assert_eq!(of_first[0]["actor"]["id"], key);
    assert_eq!(of_first[1]["actor"]["id"], Value::Null);
    has(&of_first[5]["message"], "an outage");
    assert_eq!(of_first[1]["state"], "running");
    assert_eq!(of_first[1]["mem_gib"], 1.0);

    // Pages.
    assert_eq!(walk(&ann, "/api/event/?limit=3"), events);
    let last = events.len() as u64;
    assert_eq!(ids(&page(&ann, &format!("?after={}", last - 1))), [last]);
    assert!(page(&ann, &format!("?after={last}")).is_empty());
    let filtered = page(
        &ann,
        &format!("?instance={}&after=2&limit=2", uuid(&created)),
    );
    assert_eq!(kinds(&filtered), ["renamed", "stopped"]);

    // Another user has none of them.
    let bob = server.user("bob@example.com").unwrap();
    assert!(page(&bob, "").is_empty());
    let operator = server.cli(&["events", uuid(&created)]).unwrap();
    assert!(operator.contains(&format!("\tkey:{key}\t")), "{operator}");
}

#[test]
fn an_event_says_why_in_words_and_not_in_those_of_the_engine() {
    let (server, api) = start_with("faults = [{ call = \"ensure\", nth = 1, error = \"failed\" }]");
    let created = api.small_container().unwrap();
    let shown = api.wait_for(uuid(&created), "error").unwrap().to_string();
    let events = page(&api, "");
    let failed = events.iter().find(|e| e["type"] == "failed").unwrap();
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("create it again"), "{message}");
    let lines = server.cli(&["events", uuid(&created)]).unwrap();
    let line = lines.lines().find(|l| l.contains("\tfailed\t")).unwrap();
    let why = line.split('\t').next_back().unwrap();
    assert!(why.len() > 3 && !message.contains(why), "{line}");
    assert!(!shown.contains(why), "{shown}");
}

#[test]
fn events_beyond_retention_are_a_reset() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-100d").unwrap();
    let mut server = super::start_roomy(&clock.environment());
    let mut api = server.user("ann@example.com").unwrap();
    let created = running(&api);
    let old = page(&api, "").len() as u64;
    server.terminate().unwrap();
    clock.set("+0").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    server.run().unwrap();
    api = server.again(&api);
    until_true("old events are removed", || page(&api, "").is_empty());
    let reset = page(&api, "?after=0");
    assert_eq!(kinds(&reset), ["reset"]);
    assert_eq!(ids(&reset), [old]);
    // The sequence goes on, and the instance keeps its events for the operator.
    api.act(uuid(&created), "stop").is(200);
    let events = page(&api, "?after=0");
    assert_eq!(kinds(&events)[..2], ["reset", "stopped"]);
    assert_eq!(ids(&events)[..2], [old, old + 1]);
    assert_eq!(
        kinds(&page(&api, &format!("?after={old}")))[..1],
        ["stopped"]
    );
    // A number of a database that a backup has replaced.
    assert_eq!(kinds(&page(&api, "?after=1000000")), ["reset"]);
    assert!(
        server
            .cli(&["events", uuid(&created)])
            .unwrap()
            .contains("created")
    );
    let mut stream = super::Stream::of(&server, &api, "?after=0");
    assert_eq!(stream.ready(), 0);
    let (kind, id, data) = stream.next().unwrap();
    assert_eq!((kind.as_str(), id), ("reset", old));
    assert_eq!(data, json!({ "oldest": old + 1 }));
    assert_eq!(stream.event()["type"], "stopped");
    drop(stream);
}
