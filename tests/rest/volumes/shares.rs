//! Shares: another user reads a volume.

use super::{ANN, delete, delete_at_last, id, one, ready, running_with, with_volumes};
use crate::{Expected, has, start, used, uuid};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api};

const BOB: &str = "bob@example.com";
const PATH: &str = "/api/volume/genome/share/";
/// The volume in a path, as its readers name it.
const OF_ANN: &str = "ann@example.com%2Fgenome";

fn share(api: &Api, user: &str) -> Answer {
    api.send("POST", PATH, &json!({ "user": user })).unwrap()
}

fn mount(api: &Api, volume: &str, read_only: Value) -> Answer {
    let mount = json!([{ "volume": volume, "path": "/genome", "read_only": read_only }]);
    api.create(&with_volumes(mount)).unwrap()
}

#[test]
fn a_volume_of_another_user_is_read_only_and_stays_after_the_end_of_its_share() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    let genome = ready(&ann, "genome", 2);
    let shared = share(&ann, BOB).is(201);
    assert_eq!(used(&bob, "n_volumes"), 0);
    for named in ["ann@example.com/genome", id(&genome)] {
        let refused = mount(&bob, named, json!(false)).is(400);
        has(&refused["volumes"][0], "another user's");
    }
    // Read-only is the default for a volume of another user.
    let first = mount(&bob, "Ann@example.com/genome", Value::Null).is(201);
    assert_eq!(first["volumes"][0]["read_only"], true);
    bob.wait_for(uuid(&first), "running").unwrap();
    let own = running_with(&ann, "genome", true);
    let refused = mount(&ann, "genome", json!(false)).is(400);
    has(&refused["volumes"][0], "reads genome");
    let end = format!("{PATH}{}/", shared["id"].as_str().unwrap());
    ann.raw("DELETE", &end, None).is(204);
    bob.act(uuid(&first), "stop").is(200);
    bob.act(uuid(&first), "restart").is(200);
    let refused = delete(&ann, "genome").is(400);
    let why = refused["detail"].as_str().unwrap();
    has(why, BOB);
    has(why, own["name"].as_str().unwrap());
    ann.delete(uuid(&own)).is(204);
    bob.delete(uuid(&first)).is(204);
    delete_at_last(&ann, "genome");
}

#[test]
fn a_share_of_another_volume_of_the_name_takes_nothing_from_a_reader() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    let carol = server.user("carol@example.com").unwrap();
    let of_ann = ready(&ann, "genome", 1);
    let of_carol = ready(&carol, "genome", 1);
    let shared = share(&ann, BOB).is(201);
    share(&carol, BOB).is(201);
    for (named, volume) in [(OF_ANN, &of_ann), ("carol@example.com%2Fgenome", &of_carol)] {
        assert_eq!(one(&bob, named).is(200)["id"], volume["id"]);
    }
    // It does not come in the place of a volume that is shared no more either.
    let end = format!("{PATH}{}/", shared["id"].as_str().unwrap());
    ann.raw("DELETE", &end, None).is(204);
    for named in ["genome", "ann@example.com/genome"] {
        let refused = mount(&bob, named, json!(true)).is(400);
        let why = refused["volumes"][0].as_str().unwrap();
        has(why, "you have no volume");
    }
    share(&ann, BOB).is(201);
    let own = ready(&bob, "genome", 1);
    let by_owner = one(&bob, "bob@example.com%2Fgenome").is(200);
    assert_eq!(by_owner["id"], own["id"]);
    let seen = || bob.get("/api/volume/").is(200).as_array().unwrap().len();
    assert_eq!(seen(), 3);
    // A deleted volume is shared no more.
    delete(&ann, "genome").is(204);
    one(&bob, id(&of_ann)).is(404);
    assert_eq!(seen(), 2);
}

#[test]
fn the_owner_hears_of_the_end_of_a_share_by_its_reader() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    let genome = ready(&ann, "genome", 1);
    let shared = share(&ann, BOB).is(201);
    let reading = mount(&bob, id(&genome), json!(true)).is(201);
    let path = format!("/api/volume/{}/share/", id(&genome));
    let end = format!("{path}{}/", shared["id"].as_str().unwrap());
    bob.raw("DELETE", &end, None).is(204);
    bob.raw("DELETE", &end, None).is(404);
    bob.get(&path).is(404);
    let events = ann.get("/api/event/?after=0&limit=1000").is(200);
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], "volume-unshared");
    has(&last["message"], "bob@example.com does not");
    // The owner learns no key of the reader.
    assert_eq!(last["actor"], json!({ "kind": "system", "id": null }));
    let kept = bob.instance(uuid(&reading)).is(200);
    assert_eq!(kept["volumes"][0]["volume"], genome["id"]);
}

#[test]
fn a_volume_of_a_suspended_owner_is_not_attached() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    ready(&ann, "genome", 1);
    share(&ann, BOB).is(201);
    server
        .cli(&["suspend", "--user", ANN, "--reason", "unpaid"])
        .unwrap();
    let refused = mount(&bob, "ann@example.com/genome", json!(true)).is(400);
    let why = refused["volumes"][0].as_str().unwrap();
    has(why, "suspended");
    assert!(!why.contains("unpaid"), "{why}");
}

#[test]
fn a_volume_has_at_most_fifty_readers() {
    let (_server, ann) = start();
    ready(&ann, "genome", 1);
    for n in 0..50 {
        share(&ann, &format!("user-{n}@example.com")).is(201);
    }
    let refused = share(&ann, "one-more@example.com").is(400);
    has(&refused["user"][0], "50");
}
