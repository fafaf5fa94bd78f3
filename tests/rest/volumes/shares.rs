//! Shares: another user reads a volume.

use super::{ANN, delete, delete_at_last, id, one, ready, rename, running_with, with_volumes};
use crate::{Expected, has, start, uuid};
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
fn a_reader_attaches_a_shared_volume_and_changes_nothing_of_it() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    let genome = ready(&ann, "genome", 2);
    let shared = share(&ann, "Bob@Example.com").is(201);
    assert_eq!(shared["user"], BOB);
    assert_eq!(ann.get(PATH).is(200), json!([shared]));
    let refused = share(&ann, BOB).is(400);
    has(refused["user"][0].as_str().unwrap(), "already");
    share(&ann, ANN).is(400);
    share(&ann, "nobody").is(400);

    let seen = one(&bob, OF_ANN).is(200);
    assert_eq!(one(&bob, id(&genome)).is(200), seen);
    assert_eq!(seen["shared"], true);
    assert_eq!(seen["owner_email"], ANN);
    assert_eq!(bob.get("/api/volume/").is(200), json!([seen]));
    assert_eq!(bob.get("/api/quota/").is(200)["n_volumes"]["used"], 0);
    for named in [OF_ANN, id(&genome)] {
        delete(&bob, named).is(404);
        rename(&bob, named, &json!({ "name": "mine" })).is(404);
        let path = format!("/api/volume/{named}/share/");
        bob.send("POST", &path, &json!({ "user": "carol@example.com" }))
            .is(404);
        bob.send("POST", &path, &json!({ "user": 7 })).is(404);
    }
    for named in ["ann@example.com/genome", id(&genome)] {
        let refused = mount(&bob, named, json!(false)).is(400);
        has(refused["volumes"][0].as_str().unwrap(), "another user's");
    }
    // Read-only is the default for a volume of another user.
    let first = mount(&bob, "Ann@example.com/genome", Value::Null).is(201);
    assert_eq!(first["volumes"][0]["read_only"], true);
    bob.wait_for(uuid(&first), "running").unwrap();
    let own = running_with(&ann, "genome", true);
    let attached = &one(&ann, "genome").is(200)["attached_to"];
    let attached = attached.as_array().unwrap();
    assert_eq!(attached.len(), 2);
    let of_bob = attached
        .iter()
        .find(|one| one["owner_email"] == BOB)
        .unwrap();
    for hidden in ["instance", "name", "path"] {
        assert_eq!(of_bob[hidden], Value::Null, "{hidden}");
    }
    let seen = &one(&bob, OF_ANN).is(200)["attached_to"];
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert_eq!(seen[0]["instance"], first["uuid"]);
    has(
        mount(&ann, "genome", json!(false)).is(400)["volumes"][0]
            .as_str()
            .unwrap(),
        "reads genome",
    );

    // The end of the share refuses new attachments, and the instance keeps the volume.
    let end = format!("{PATH}{}/", shared["id"].as_str().unwrap());
    ann.raw("DELETE", &end, None).is(204);
    ann.raw("DELETE", &end, None).is(404);
    one(&bob, OF_ANN).is(404);
    assert_eq!(bob.get("/api/volume/").is(200), json!([]));
    mount(&bob, "genome", json!(true)).is(400);
    let path = format!("/api/instance/{}/", uuid(&first));
    assert_eq!(bob.get(&path).is(200)["volumes"][0]["name"], "genome");
    bob.act(uuid(&first), "stop").is(200);
    bob.act(uuid(&first), "restart").is(200);
    let refused = delete(&ann, "genome").is(400);
    let why = refused["detail"].as_str().unwrap();
    has(why, BOB);
    has(why, own["name"].as_str().unwrap());
    assert!(!why.contains(first["name"].as_str().unwrap()), "{why}");
    ann.delete(uuid(&own)).is(204);
    bob.delete(uuid(&first)).is(204);
    delete_at_last(&ann, "genome");
    server.finish().unwrap();
}

#[test]
fn a_name_alone_means_ones_own_volume() {
    let (server, ann) = start();
    let (bob, carol) = (
        server.user(BOB).unwrap(),
        server.user("carol@example.com").unwrap(),
    );
    let of_ann = ready(&ann, "genome", 1);
    let of_carol = ready(&carol, "genome", 1);
    let shared = share(&ann, BOB).is(201);
    share(&carol, BOB).is(201);
    // A share of another volume of this name takes nothing from the reader.
    assert_eq!(one(&bob, OF_ANN).is(200)["id"], of_ann["id"]);
    assert_eq!(
        one(&bob, "carol@example.com%2Fgenome").is(200)["id"],
        of_carol["id"]
    );
    // It does not come in the place of a volume that is shared no more either.
    let end = format!("{PATH}{}/", shared["id"].as_str().unwrap());
    ann.raw("DELETE", &end, None).is(204);
    for named in ["genome", "ann@example.com/genome"] {
        let refused = mount(&bob, named, json!(true)).is(400);
        has(
            refused["volumes"][0].as_str().unwrap(),
            "you have no volume",
        );
    }
    one(&bob, "genome").is(404);
    share(&ann, BOB).is(201);
    let own = ready(&bob, "genome", 1);
    assert_eq!(
        one(&bob, "bob@example.com%2Fgenome").is(200)["id"],
        own["id"]
    );
    assert_eq!(one(&bob, "genome").is(200)["id"], own["id"]);
    assert_eq!(bob.get("/api/volume/").is(200).as_array().unwrap().len(), 3);
    // A deleted volume is shared no more.
    delete(&ann, "genome").is(204);
    one(&bob, id(&of_ann)).is(404);
    assert_eq!(bob.get("/api/volume/").is(200).as_array().unwrap().len(), 2);
    server.finish().unwrap();
}

#[test]
fn a_reader_ends_the_own_share_alone() {
    let (server, ann) = start();
    let bob = server.user(BOB).unwrap();
    let genome = ready(&ann, "genome", 1);
    let carol = server.user("carol@example.com").unwrap();
    let (of_bob, of_carol) = (
        share(&ann, BOB).is(201),
        share(&ann, "carol@example.com").is(201),
    );
    let path = format!("/api/volume/{}/share/", id(&genome));
    let end = |api: &Api, share: &Value| {
        let one = format!("{path}{}/", share["id"].as_str().unwrap());
        api.raw("DELETE", &one, None).unwrap()
    };
    assert_eq!(bob.get(&path).is(200), json!([of_bob]));
    end(&bob, &of_carol).is(404);
    let reading = mount(&bob, id(&genome), json!(true)).is(201);
    end(&bob, &of_bob).is(204);
    end(&bob, &of_bob).is(404);
    bob.get(&path).is(404);
    assert_eq!(bob.get("/api/volume/").is(200), json!([]));
    assert_eq!(ann.get(PATH).is(200), json!([of_carol]));
    assert_eq!(carol.get("/api/volume/").is(200)[0]["id"], genome["id"]);
    let events = ann.get("/api/event/?after=0&limit=1000").is(200);
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], "volume-unshared");
    has(
        last["message"].as_str().unwrap(),
        "bob@example.com does not",
    );
    // The owner learns no key of the reader.
    assert_eq!(last["actor"], json!({ "kind": "system", "id": null }));
    let kept = bob.instance(uuid(&reading)).is(200);
    assert_eq!(kept["volumes"][0]["volume"], genome["id"]);
    server.finish().unwrap();
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
    server.finish().unwrap();
}

#[test]
fn a_volume_has_at_most_fifty_readers() {
    let (server, ann) = start();
    ready(&ann, "genome", 1);
    for n in 0..50 {
        share(&ann, &format!("user-{n}@example.com")).is(201);
    }
    let refused = share(&ann, "one-more@example.com").is(400);
    has(refused["user"][0].as_str().unwrap(), "50");
    server.finish().unwrap();
}
