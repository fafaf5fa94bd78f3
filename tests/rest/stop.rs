//! Section 4.5: stop.

use crate::{start, start_with, uuid};
use wharf_tests::small;

#[test]
fn the_answer_says_shut_off_and_get_shows_the_state_of_section_3() {
    let (server, api) = start();
    for (kind, shown) in [("container", "exited"), ("vm", "shut_off")] {
        let created = api.create(&small(kind)).unwrap().expect(201).unwrap();
        api.wait_for(uuid(&created), "running").unwrap();
        let stopped = api
            .act(uuid(&created), "stop")
            .unwrap()
            .expect(200)
            .unwrap();
        let keys: Vec<_> = stopped.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["message", "state", "uuid"], "{stopped}");
        assert_eq!(stopped["state"], "shut_off");
        assert_eq!(stopped["uuid"], created["uuid"]);
        let got = api.instance(uuid(&created)).unwrap().expect(200).unwrap();
        assert_eq!(got["state"], shown);
    }
    server.finish().unwrap();
}

#[test]
fn only_a_running_instance_can_be_stopped_and_the_message_names_the_state() {
    let (server, api) = start_with("ready_after_ms = 1500");
    let created = api.small_container().unwrap();
    let answer = api.act(uuid(&created), "stop").unwrap();
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(
        answer.body["detail"]
            .as_str()
            .unwrap()
            .contains("provisioning"),
        "{answer:?}"
    );
    api.wait_for(uuid(&created), "running").unwrap();
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let answer = api.act(uuid(&created), "stop").unwrap();
    assert_eq!(answer.status, 400);
    assert!(
        answer.body["detail"].as_str().unwrap().contains("exited"),
        "{answer:?}"
    );
    server.finish().unwrap();
}

#[test]
fn an_instance_that_ends_by_itself_is_noticed() {
    let (server, api) =
        start_with("faults = [{ call = \"ensure\", nth = 1, error = \"dies\", after_ms = 3000 }]");
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    api.wait_for(uuid(&created), "exited").unwrap();
    api.act(uuid(&created), "restart")
        .unwrap()
        .expect(200)
        .unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    server.finish().unwrap();
}
