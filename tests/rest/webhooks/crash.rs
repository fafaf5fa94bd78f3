//! A server that is killed in the middle of deliveries loses none.

use super::{LOOPBACK, Receiver, create, events, ids};
use crate::{kill, start_on, wait_until};
use std::collections::BTreeMap;
use wharf_tests::{simulated_node, small};

/// Kills of the server.
const KILLS: usize = 3;

#[test]
fn no_delivery_is_lost_when_the_server_is_killed() {
    let node = simulated_node("one", "");
    let (mut server, mut ann) = start_on("", &format!("{LOOPBACK}{node}"));
    let receivers = [Receiver::start(), Receiver::start(), Receiver::start()];
    for receiver in &receivers {
        create(&ann, receiver, &[]);
    }
    for n in 1..=KILLS {
        let before = receivers[0].requests().len();
        for _ in 0..6 {
            let created = ann.create(&small("container")).unwrap();
            if created.status == 201 {
                ann.delete(created.body["uuid"].as_str().unwrap()).unwrap();
            }
        }
        // Some are delivered, and others are on their way.
        receivers[0].wait(before + n);
        ann = kill(&mut server, &ann);
    }
    // The quota counts an instance out before its last event is durable.
    let all = wait_until("all instances are purged", || {
        let all = events(&ann);
        let count = |name| all.iter().filter(|event| event["type"] == name).count();
        Ok((count("purged") == count("created")).then_some(all))
    });
    assert!(all.len() >= 3 * KILLS, "{}", all.len());
    for receiver in &receivers {
        let requests = receiver.wait_for(&ids(&all));
        // A repeated request is the first one again, so that its receiver can tell.
        let mut bodies = BTreeMap::new();
        for request in &requests {
            let first = bodies.entry(request.id().to_owned());
            assert_eq!(first.or_insert(request.body.clone()), &request.body);
        }
        assert_eq!(bodies.len(), all.len());
        println!("{} events, {} requests", all.len(), requests.len());
    }
}
