//! Drivers with impossible answers: the host detects them, and acknowledged requests hold.

use crate::engine::nowhere;
use crate::fixtures::Plugins;
use crate::{create_on, logged, server, uuid};
use wharf_tests::{observed, until};

#[test]
fn impossible_answers_become_an_error_in_time() {
    let plugins = Plugins::driver();
    let modes = [
        "other-generation",
        "back-and-forth",
        "much-later",
        "much-text",
    ];
    let nodes = modes.map(|mode| (mode, nowhere()));
    let (server, api) = server(&plugins, &nodes);
    let made = modes.map(|mode| create_on(&api, mode));
    for instance in &made {
        api.wait_for(uuid(instance), "error").unwrap();
    }
    let id = format!("instance={}", uuid(&made[0]));
    assert!(logged(&server, &[&id, "a report for generation"]));
    for instance in &made {
        let events = server.cli(&["events", uuid(instance)]).unwrap();
        assert!(
            events.len() < 4000 && !events.contains('\u{1b}'),
            "{events}"
        );
        api.delete(uuid(instance)).unwrap().expect(204).unwrap();
    }
    // Their resources are free again.
    for mode in modes {
        until(&format!("{mode} is empty"), || {
            let mut all = crate::on(mode);
            all["n_vcpus"] = 8.into();
            Ok((api.create(&all)?.status == 201).then_some(()))
        })
        .unwrap();
    }
    server.finish().unwrap();
}

/// The driver reports success and does nothing. The host cannot know better, so the instance counts
/// as running. Acknowledged requests still hold, and no other instance is affected.
#[test]
fn a_lying_driver_does_not_undo_acknowledged_requests() {
    let plugins = Plugins::driver();
    let (mut server, api) = server(&plugins, &[("lies", nowhere())]);
    let well = api.small_container().unwrap();
    api.wait_for(uuid(&well), "running").unwrap();
    let lied = create_on(&api, "lies");
    api.wait_for(uuid(&lied), "running").unwrap();
    let stats = api
        .get(&format!("/api/instance/{}/stats/", uuid(&lied)))
        .unwrap();
    if stats.status == 200 {
        for (_, value) in stats.body.as_object().unwrap() {
            assert!(value.as_f64().unwrap() >= 0.0, "{}", stats.body);
        }
    } else {
        stats.expect(502).unwrap();
    }
    // It never stops; the user sees the durable state.
    let stopped = api.act(uuid(&lied), "stop").unwrap().expect(200).unwrap();
    assert_eq!(stopped["state"], "shut_off");
    let shown = || api.instance(uuid(&lied)).unwrap().expect(200).unwrap()["state"].clone();
    assert_eq!(shown(), "exited");
    observed(&api, "lies", 4).unwrap();
    assert_eq!(shown(), "exited");
    // Its delete traps each time.
    api.delete(uuid(&lied)).unwrap().expect(204).unwrap();
    assert_eq!(api.instance(uuid(&lied)).unwrap().status, 404);
    server.kill().unwrap();
    server.run().unwrap();
    let api = server.again(&api);
    assert_eq!(api.instance(uuid(&lied)).unwrap().status, 404);
    assert_eq!(api.list().unwrap().len(), 1);
    // The simulated engine ended with the server, and so did its instances. New ones are served as
    // before.
    let other = api.small_container().unwrap();
    api.wait_for(uuid(&other), "running").unwrap();
    assert!(logged(&server, &["has rows without valid ids"]));
    server.finish().unwrap();
}
