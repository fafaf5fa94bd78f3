//! Instances that were lost with their node, and come back from their backups.

use super::{apart, done, finish, path, send, snapshot_of, until_state};
use crate::moves::Cluster;
use crate::snapshots::plans::WHILE;
use crate::{Expected, has, until_says, until_true, uuid, wait_until, with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use wharf_testkit::object_store::{BUCKET, Fault};
use wharf_tests::{Answer, Api, Shell, interval};

fn make(api: &Api, name: &str) -> Value {
    let body = with("container", json!({ "name": name }));
    let created = api.create(&body).is(201);
    api.wait_for(uuid(&created), "running").unwrap()
}

/// Gives the node `one` up, on which all instances are.
pub(super) fn lose(cluster: &Cluster) {
    cluster.away(0, true);
    let server = &cluster.server;
    until_says(server, &["node", "list"], "out of reach");
    server.cli(&["node", "resume", "two"]).unwrap();
    server.cli(&["node", "lost", "one", "--yes"]).unwrap();
}

pub(super) fn path_of(instance: &Value) -> String {
    format!("/api/instance/{}/recreate/", uuid(instance))
}

pub(super) fn recreate(api: &Api, instance: &Value, body: &Value) -> Answer {
    api.send("POST", &path_of(instance), body).unwrap()
}

pub(super) fn events(api: &Api, instance: &Value, kind: &str) -> Vec<Value> {
    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let mut events = events.as_array().unwrap().clone();
    events.retain(|event| event["instance"] == instance["uuid"] && event["type"] == kind);
    events
}

#[test]
fn a_lost_instance_comes_back_from_a_backup_or_empty() {
    let (cluster, store) = apart();
    let (api, server) = (&cluster.api, &cluster.server);
    cluster.drain("two");
    let [source, other, bare] = ["source", "other", "bare"].map(|name| make(api, name));
    let [oldest, newest] = [(); 2].map(|()| done(api, &source));
    let foreign = done(api, &other);
    let denied = Fault::Answer(403, "AccessDenied");
    store
        .s3
        .misbehave(&format!("/{BUCKET}/"), usize::MAX, denied);
    let failed = until_state(api, &send(api, &source), "failed");
    store.s3.behave();
    api.get(&path_of(&source)).is(400);
    lose(&cluster);

    let found = api.get(&path_of(&source)).is(200);
    assert_eq!(found["backup"]["id"], newest["id"], "{found}");
    assert!(found["lost_at"].is_string() && found["missing_s"].is_u64());
    assert_eq!(found["volumes_lost"], json!([]));
    let none = api.get(&path_of(&bare)).is(200);
    assert!(none["backup"].is_null() && none["missing_s"].is_null());
    let bob = server.user("bob@example.com").unwrap();
    bob.get(&path_of(&source)).is(404);
    recreate(&bob, &source, &json!({ "backup": newest["id"] })).is(404);
    for wrong in [&foreign["id"], &failed["id"], &json!("none")] {
        let refused = recreate(api, &source, &json!({ "backup": wrong })).is(400);
        has(&refused["backup"][0], "no such backup");
    }
    let refused = recreate(api, &bare, &json!({ "backup": "newest" })).is(400);
    has(&refused["backup"][0], "no backup");
    for instance in [&source, &bare] {
        assert_eq!(cluster.now(instance)["state"], "error");
    }

    let newest_id = json!({ "backup": "newest" });
    let again = recreate(api, &source, &newest_id).is(200);
    assert_eq!(again["state"], "provisioning");
    recreate(api, &source, &newest_id).is(400);
    let now = api.wait_for("source", "running").unwrap();
    for same in ["uuid", "name", "original_service_password", "created_at"] {
        assert_eq!(now[same], source[same], "{same}");
    }
    let taken = events(api, &source, "snapshot-created");
    let of = &cluster.machines(1)[uuid(&source)]["content_of"];
    assert_eq!(*of, taken[1]["snapshot"]);
    let told = events(api, &source, "recreated");
    let at = newest["created_at"].as_str().unwrap();
    has(&told[0]["message"], at);

    // Without a terminal, a command names the disk.
    let shell = Shell::signed_in(server, "ann@example.com").unwrap();
    let ended = shell.run(&["recreate", "bare"]).unwrap();
    has(ended.stderr, "--backup newest");
    let json = |args: &[&str]| {
        let path = format!("/api/instance/{}/recreate/", args[1]);
        shell.json(args, "POST", &path, 200).unwrap()
    };
    json(&["recreate", "bare", "--empty"]);
    // An altered backup never starts, and another disk is possible.
    let id = foreign["id"].as_str().unwrap();
    let file = store.s3.file(&format!("wharf/{id}/content"));
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(&file, altered).unwrap();
    recreate(api, &other, &newest_id).is(200);
    until_true("the content is refused", || {
        events(api, &other, "failed").len() == 1
    });
    assert_eq!(cluster.now(&other)["state"], "error");
    fs::write(&file, whole).unwrap();
    json(&["recreate", "other", "--backup", id]);
    for name in ["bare", "other"] {
        api.wait_for(name, "running").unwrap();
    }
    assert!(cluster.machines(1)[uuid(&bare)]["content_of"].is_null());
    let of = &cluster.machines(1)[uuid(&other)]["content_of"];
    assert_eq!(*of, snapshot_of(api, &other));
    api.send("DELETE", &path(&oldest), &Value::Null).is(204);
    cluster.away(0, false);
    finish(cluster);
}

/// The backups that the object store was asked for.
fn asked(requests: &[String]) -> BTreeSet<String> {
    let read = requests.iter().filter(|line| line.starts_with("GET "));
    let ids = read.filter_map(|line| line.strip_prefix(&format!("GET /{BUCKET}/wharf/")));
    let ids = ids.filter_map(|line| line.split_once('/'));
    ids.map(|(id, _)| id.to_owned()).collect()
}

#[test]
fn the_operator_brings_the_instances_of_a_node_back_a_few_at_a_time() {
    let (mut cluster, store) = apart();
    let user = |name: &str| {
        let api = cluster.server.user(&format!("{name}@example.com")).unwrap();
        store.add(&api);
        api
    };
    let mut others = ["bob", "carol"].map(user);
    cluster.drain("two");
    // Those of carol, who is suspended, and the last one of bob have other fates.
    let names = ["box-0", "box-1", "box-2", "box-3", "box-4"];
    let made: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let api = [&cluster.api, &others[0]][n % 2];
            let made = make(api, name);
            done(api, &made);
            (made.clone(), snapshot_of(api, &made))
        })
        .collect();
    let bare = make(&others[0], "bare");
    let unpaid = make(&others[1], "unpaid");
    done(&others[1], &unpaid);
    lose(&cluster);
    let suspend = [
        "suspend",
        "--user",
        "carol@example.com",
        "--reason",
        "debts",
    ];
    cluster.server.cli(&suspend).unwrap();

    let restore = ["node", "restore", "one"];
    store.s3.requests();
    let reads = format!("GET /{BUCKET}/wharf/");
    store.s3.misbehave(&reads, usize::MAX, Fault::Hang);
    let said = cluster.server.cli(&restore).unwrap();
    for words in ["5 are made again, 2 stay lost", "no backup", "debts"] {
        has(&said, words);
    }
    let places = names.map(|name| said.find(name).unwrap());
    assert!(places.is_sorted(), "{said}");
    let mut requests = Vec::new();
    wait_until("four contents are on their way", || {
        requests.extend(store.s3.requests());
        Ok((asked(&requests).len() == 4).then_some(()))
    });
    interval(WHILE);
    requests.extend(store.s3.requests());
    assert_eq!(asked(&requests).len(), 4, "{requests:?}");

    // A kill loses none, and a second command makes none twice.
    cluster.restart_server();
    for other in &mut others {
        *other = cluster.server.again(other);
    }
    store.s3.behave();
    has(
        cluster.server.cli(&restore).unwrap(),
        "0 are made again, 2 stay lost",
    );
    let resume = ["resume", "--user", "carol@example.com"];
    cluster.server.cli(&resume).unwrap();
    has(
        cluster.server.cli(&restore).unwrap(),
        "1 are made again, 1 stay lost",
    );
    let left = [&restore[..], &["-o", "json"]].concat();
    let left: Value = serde_json::from_str(&cluster.server.cli(&left).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    assert_eq!(left[0]["owner"], "bob@example.com");
    assert_eq!(left[0]["reason"], "this instance has no backup");
    for (n, (instance, snapshot)) in made.iter().enumerate() {
        let api = [&cluster.api, &others[0]][n % 2];
        api.wait_for(uuid(instance), "running").unwrap();
        let machine = &cluster.machines(1)[uuid(instance)];
        assert_eq!(machine["content_of"], *snapshot);
        assert_eq!(events(api, instance, "recreated").len(), 1);
    }
    let told = events(&cluster.api, &made[0].0, "recreated");
    assert_eq!(told[0]["actor"]["kind"], "operator");
    others[1].wait_for("unpaid", "running").unwrap();
    recreate(&others[0], &bare, &Value::Null).is(200);
    others[0].wait_for("bare", "running").unwrap();
    for other in &others {
        for instance in other.list().unwrap() {
            other.delete(uuid(&instance)).is(204);
        }
    }
    cluster.away(0, false);
    finish(cluster);
}
