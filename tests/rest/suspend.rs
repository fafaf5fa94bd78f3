//! `wharf suspend` and `wharf resume`.

use crate::{Expected, made, start, start_lasting, until_true, until_used, uuid};
use serde_json::{Value, json};
use wharf_tests::{Api, Server, small};

const ANN: &str = "ann@example.com";

fn running(api: &Api, kind: &str) -> Value {
    made(api, &small(kind))
}

fn resize(api: &Api, id: &str) -> wharf_tests::Answer {
    api.patch(id, &json!({ "n_vcpus": 2 })).unwrap()
}

fn events(server: &Server, id: &str) -> String {
    server.cli(&["events", id]).unwrap()
}

/// Checks for a 400 whose `detail` has the reason.
fn assert_refused(answer: wharf_tests::Answer, words: &str) {
    let body = answer.is(400);
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains(words) && detail.contains("operator"),
        "{detail}"
    );
}

#[test]
fn a_suspended_instance_stops_and_its_owner_can_only_delete_it() {
    let (server, ann) = start();
    let (instance, other) = (running(&ann, "container"), running(&ann, "vm"));
    let id = uuid(&instance);
    for wrong in [
        &["suspend", id][..],
        &["suspend", id, "--reason", " "],
        &["suspend", "no-such", "--reason", "x"],
        &["suspend", "--user", "eve@example.com", "--reason", "x"],
        &["resume", id],
    ] {
        assert!(server.cli(wrong).is_err(), "{wrong:?}");
    }
    let reason = "it mines coins.";
    server.cli(&["suspend", id, "--reason", reason]).unwrap();
    ann.wait_for(id, "exited").unwrap();
    // Its compute is free, its disk is not.
    until_used(&ann, "n_vcpus", 1);
    let quota = ann.get("/api/quota/").is(200);
    assert_eq!(quota["disk_size_gib"]["used"], 20);
    assert_refused(ann.act(id, "restart").unwrap(), "it mines coins");
    assert_refused(resize(&ann, id), "it mines coins");
    let renamed = ann.patch(id, &json!({ "name": "renamed" })).unwrap();
    assert_eq!(renamed.status, 200);
    // Others are not touched.
    assert_eq!(ann.instance(uuid(&other)).unwrap().body["state"], "running");
    running(&ann, "container");
    let list = server.cli(&["suspend"]).unwrap();
    assert!(list.contains(id) && list.contains(reason), "{list}");
    let log = events(&server, id);
    assert!(log.contains("suspended") && log.contains(reason), "{log}");
    let bill = server.cli(&["bill", ANN]).unwrap();
    assert!(bill.contains(id), "{bill}");

    server.cli(&["resume", "renamed"]).unwrap();
    assert!(events(&server, id).contains("resumed"));
    assert_eq!(ann.instance(id).unwrap().body["state"], "exited");
    ann.act(id, "restart").is(200);
    ann.wait_for(id, "running").unwrap();

    server.cli(&["suspend", id, "--reason", reason]).unwrap();
    ann.delete(id).is(204);
    until_true("the suspension ends with its instance", || {
        server.cli(&["suspend"]).unwrap().is_empty()
    });
    let audit = server.cli(&["audit"]).unwrap();
    for operation in ["instance.suspend", "instance.resume"] {
        let of = |line: &&str| line.contains(operation) && line.contains("operator");
        assert!(audit.lines().any(|line| of(&line)), "{audit}");
    }
    let own = ann.get("/api/audit/").is(200);
    assert!(own.to_string().contains("instance.suspend"), "{own}");
}

#[test]
fn a_suspended_user_has_nothing_running_and_creates_nothing() {
    let (mut server, ann) = start_lasting("");
    let bob = server.user("bob@example.com").unwrap();
    let theirs = running(&bob, "container");
    let (first, second) = (running(&ann, "container"), running(&ann, "vm"));
    server
        .cli(&["suspend", uuid(&second), "--reason", "alone"])
        .unwrap();
    ann.wait_for(uuid(&second), "shut_off").unwrap();
    // Without a server too: the next start stops the instance.
    server.terminate().unwrap();
    server
        .cli(&["suspend", "--user", ANN, "--reason", "unpaid"])
        .unwrap();
    server.run().unwrap();
    let (ann, bob) = (server.again(&ann), server.again(&bob));
    ann.wait_for(uuid(&first), "exited").unwrap();
    assert_refused(ann.create(&small("container")).unwrap(), "unpaid");
    assert_refused(ann.act(uuid(&first), "restart").unwrap(), "unpaid");
    assert_eq!(
        bob.instance(uuid(&theirs)).unwrap().body["state"],
        "running"
    );
    let of_user = server.cli(&["resume", uuid(&first)]).unwrap_err();
    assert!(of_user.to_string().contains("--user"), "{of_user}");

    server.cli(&["resume", "--user", ANN]).unwrap();
    ann.act(uuid(&first), "restart").is(200);
    running(&ann, "container");
    // The instance that was suspended alone still is.
    assert_refused(ann.act(uuid(&second), "restart").unwrap(), "alone");
}
