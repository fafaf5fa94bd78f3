//! The life of a snapshot: its requests, quotas, claims, and its end with its instance.

use super::{
    all, clone, count, delete, one, ready, restore, stop, stopped, take, until_event, until_free,
    until_state,
};
use crate::fsck::{bytes, edit, replace, row_of};
use crate::scopes::key;
use crate::{
    Expected, has, kill, running, start, start_lasting, start_on, start_with, until_true, used,
    uuid, wait_until, walk,
};
use serde_json::{Value, json};
use wharf_tests::{Api, simulated_node};

const ANN: &str = "ann@example.com";

#[test]
fn events_of_snapshots_have_both_ids_and_their_own_state() {
    let (server, api) = start();
    let instance = running(&api);
    let begun = take(&api, &instance, "before").is(201);
    let taken = until_state(&api, &begun, "ready");
    // The simulated engine says a tenth of the disk.
    let told = |row: &Value| (row["size_gib"].clone(), row["clonable"].clone());
    assert_eq!(told(&begun), (Value::Null, json!(false)));
    assert_eq!(told(&taken), (json!(1), json!(true)));
    let upper = taken["id"].as_str().unwrap().to_uppercase();
    assert_eq!(api.get(&format!("/api/snapshot/{upper}/")).is(200), taken);
    let event = until_event(&api, &instance, "snapshot-ready");
    assert_eq!(event["snapshot"], taken["id"]);
    assert_eq!(event["volume"], Value::Null);
    assert_eq!(event["name"], "before");
    assert_eq!(event["state"], "ready");
    assert_eq!(event["disk_size_gib"], 1);
    assert_eq!(event["n_vcpus"], Value::Null);
    assert_eq!(event["actor"]["kind"], "node");
    let event = until_event(&api, &instance, "snapshot-created");
    assert_eq!(event["state"], "creating");
    assert_eq!(event["actor"]["kind"], "key");
    // The list of one instance leaves them out.
    let path = format!("/api/event/?after=0&instance={}", uuid(&instance));
    let listed = api.get(&path).is(200);
    let listed = listed.as_array().unwrap();
    assert!(listed.iter().any(|event| event["type"] == "ready"));
    assert!(listed.iter().all(|event| event["snapshot"].is_null()));
    let id = taken["id"].as_str().unwrap();
    has(server.cli(&["events", id]).unwrap(), "snapshot-ready");
    assert_eq!(one(&key(&server, &["read"]), &taken).is(200), taken);
    delete(&api, &taken).is(204);
    until_free(&api);
    assert_eq!(used(&api, "snapshot_gib"), 0);
    let log = api.get("/api/audit/").is(200).to_string();
    for operation in ["snapshot.create", "snapshot.delete"] {
        has(&log, operation);
    }
}

#[test]
fn a_snapshot_without_a_name_has_the_time() {
    let (_server, api) = start();
    let instance = running(&api);
    let take = || {
        let path = format!("/api/instance/{}/snapshot/", uuid(&instance));
        api.send("POST", &path, &json!({})).is(201)
    };
    let (first, second) = (take(), take());
    let name = first["name"].as_str().unwrap();
    assert_eq!(name.len(), "snapshot-20261127-184512".len(), "{name}");
    has(name, "snapshot-2");
    assert_ne!(first["name"], second["name"]);
}

#[test]
fn an_engine_without_snapshots_is_named() {
    let (_server, api) = start_with("snapshots = \"none\"");
    let instance = running(&api);
    let refused = take(&api, &instance, "before").is(400);
    has(&refused["detail"], "simulated");
    let estimate = format!("/api/instance/{}/snapshot-estimate/", uuid(&instance));
    api.get(&estimate).is(400);
    let vm = api.create(&wharf_tests::small("vm")).is(201);
    let vm = api.wait_for(uuid(&vm), "running").unwrap();
    let refused = take(&api, &vm, "vm").is(400);
    has(&refused["detail"], "VM");
}

#[test]
fn the_estimate_of_a_stopped_instance_is_the_whole_disk_without_a_freeze() {
    let (_server, api) = start_with("snapshots = \"copied\"");
    let instance = running(&api);
    let estimate = format!("/api/instance/{}/snapshot-estimate/", uuid(&instance));
    let told = || api.get(&estimate).is(200);
    assert_eq!(told()["frozen"], true);
    assert!(told()["seconds"].as_u64().unwrap() >= 1);
    stop(&api, &instance);
    assert_eq!(told()["frozen"], false);
    assert_eq!(told()["size_gib"], instance["disk_size_gib"]);
}

#[test]
fn the_progress_of_a_copy_is_its_time_beside_the_estimate() {
    let settings = "snapshots = \"copied\", snapshot_ms = 100000";
    let (mut server, api) = start_lasting(settings);
    let instance = running(&api);
    let estimate = format!("/api/instance/{}/snapshot-estimate/", uuid(&instance));
    // A tenth of the disk is in use.
    assert_eq!(api.get(&estimate).is(200)["seconds"], 6);
    let taken = take(&api, &instance, "before").is(201);
    let says = |api: &Api, words: &str| {
        wait_until(&format!("the progress has {words}"), || {
            let now = one(api, &taken).is(200);
            let progress = now["progress"].as_str().unwrap_or_default();
            Ok(progress.ends_with(words).then(|| progress.to_owned()))
        })
    };
    let first = says(&api, " s of about 6 s");
    until_true("the time goes on", || {
        says(&api, " s of about 6 s") != first
    });
    // A later process knows neither the beginning nor the use of the disk.
    let api = kill(&mut server, &api);
    says(&api, "about 60 s in all");
    delete(&api, &taken).is(204);
    until_free(&api);
}

#[test]
fn an_idempotency_key_belongs_to_one_instance() {
    let (_server, api) = start();
    let (instance, other) = (running(&api), running(&api));
    let send = |instance: &Value| {
        let path = format!("/api/instance/{}/snapshot/", uuid(instance));
        let headers = [("Idempotency-Key", "k1")];
        api.send_with("POST", &path, &headers, &json!({ "name": "before" }))
    };
    send(&instance).is(201);
    assert_eq!(send(&instance).is(201)["state"], "creating");
    send(&other).is(422);
    assert_eq!(all(&api).len(), 1);
}

#[test]
fn the_snapshots_of_one_instance_have_pages_of_their_own() {
    let (_server, api) = start();
    let (instance, other) = (running(&api), running(&api));
    let names: Vec<_> = (0..5).map(|n| format!("snapshot-{n}")).collect();
    for name in &names {
        ready(&api, &instance, name);
    }
    ready(&api, &other, "snapshot-5");
    let of = format!("/api/snapshot/?instance={}&limit=2", uuid(&instance));
    let found = walk(&api, &of);
    assert!(found.iter().map(|row| &row["name"]).eq(&names));
}

#[test]
fn quotas_limit_snapshots() {
    let quota = "[quota]\nn_snapshots = 2\nsnapshot_gib = 15\n";
    let (server, api) = start_on(quota, &simulated_node("one", "snapshot_ms = 60000"));
    let instance = running(&api);
    let limits = api.get("/api/quota/").is(200);
    assert_eq!(limits["n_snapshots"], json!({ "used": 0, "limit": 2 }));
    // Until it is ready, a snapshot holds the whole disk.
    let first = take(&api, &instance, "first").is(201);
    assert_eq!(used(&api, "snapshot_gib"), 10);
    let short = take(&api, &instance, "second").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["snapshot_gib"]));
    assert_eq!(short["nearest_available"], json!({ "snapshot_gib": 5 }));
    has(&short["message"], "quota");
    let limit = ["user", "limit", ANN, "--snapshot-gib", "unlimited"];
    server.cli(&limit).unwrap();
    take(&api, &instance, "second").is(201);
    let short = take(&api, &instance, "third").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["n_snapshots"]));
    server
        .cli(&["user", "limit", ANN, "--snapshots", "3"])
        .unwrap();
    take(&api, &instance, "third").is(201);
    delete(&api, &first).is(204);
}

#[test]
fn a_snapshot_claims_the_disk_until_its_size_is_known() {
    let (server, api) = start_with("snapshot_ms = 1000");
    let instance = running(&api);
    let disk = |expected: &str| has(server.cli(&["node", "list"]).unwrap(), expected);
    disk(" 10/500");
    let taken = take(&api, &instance, "before").is(201);
    disk(" 20/500");
    until_state(&api, &taken, "ready");
    disk(" 11/500");
    // A node without the room for the whole disk takes none.
    let volume = json!({ "name": "large", "size_gib": 480 });
    api.send("POST", "/api/volume/", &volume).is(201);
    let short = take(&api, &instance, "second").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["disk_size_gib"]));
    assert_eq!(short["requested"], json!({ "disk_size_gib": 10 }));
    assert_eq!(short["nearest_available"], json!({ "disk_size_gib": 9 }));
    // Neither does a clone find room there.
    let short = clone(&api, &taken).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["disk_size_gib"]));
}

#[test]
fn an_instance_has_at_most_32_snapshots() {
    let (_server, api) = start();
    let instance = running(&api);
    for n in 0..32 {
        take(&api, &instance, &format!("before-{n}")).is(201);
    }
    let refused = take(&api, &instance, "one-more").is(400);
    has(&refused["detail"], "32");
}

#[test]
fn fsck_names_snapshots_that_contradict_their_instance() {
    let (mut server, api) = start();
    let instance = running(&api);
    ready(&api, &instance, "before");
    server.terminate().unwrap();
    edit(&server, |rows| {
        let key = [b"i", &bytes(uuid(&instance))[..], &[0]].concat();
        assert!(rows.remove(&*key).unwrap().is_some());
    });
    let found = server.cli(&["fsck"]).unwrap_err().to_string();
    has(found, "its instance does not exist");
}

#[test]
fn fsck_names_restores_and_snapshots_that_contradict_their_instances() {
    let (mut server, api) = start_with("restore_ms = 100000");
    let theirs = running(&server.user("bob@example.com").unwrap());
    let [restored, other, third] = [(); 3].map(|()| stopped(&api));
    let [first, foreign, _, twice] =
        ["first", "other", "named", "twice"].map(|name| ready(&api, &restored, name));
    restore(&api, &first, false).is(200);
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    let id = |snapshot: &Value| snapshot["id"].as_str().unwrap().to_owned();
    edit(&server, |rows| {
        let of = |instance: &Value| bytes(uuid(instance));
        let restore = |instance: &Value| [b"x", &[7_u8][..], &of(instance)[..]].concat();
        let row = row_of(rows, &restore(&restored));
        for instance in [&other, &third] {
            rows.insert(&*restore(instance), &*row).unwrap();
        }
        replace(rows, &restore(&third), &bytes(&id(&first)), &of(&third));
        let row = |snapshot: &Value| [b"d", &bytes(&id(snapshot))[..], &[0]].concat();
        replace(rows, &row(&first), b"\x03one", b"\x03two");
        replace(rows, &row(&foreign), &of(&restored), &of(&theirs));
        replace(rows, &row(&twice), b"twice", b"named");
    });
    let found = server.cli(&["fsck"]).unwrap_err().to_string();
    let [restored, other, third] = [&restored, &other, &third].map(uuid);
    for finding in [
        format!("{restored}: its disk is restored from another node"),
        format!("{other}: its disk is restored from one of another instance"),
        format!("{third}: its disk is restored from no snapshot"),
        format!("snapshot {}: its instance is on another node", id(&first)),
        format!("snapshot {}: its instance is another user's", id(&foreign)),
        "another one of its instance has its name".to_owned(),
    ] {
        has(&found, finding);
    }
}

#[test]
fn an_old_image_is_restored_and_not_cloned() {
    let (_server, api) = start_with("snapshots_clonable = false");
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    assert_eq!(taken["clonable"], false);
    has(&clone(&api, &taken).is(400)["detail"], "not cloned");
    restore(&api, &taken, false).is(200);
    until_event(&api, &instance, "restored");
}

#[test]
fn a_disk_that_is_restored_changes_in_no_other_way() {
    let (_server, api) = start_with("restore_ms = 100000");
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, false).is(200);
    let refusals = [
        take(&api, &instance, "now").is(400),
        restore(&api, &taken, false).is(400),
        delete(&api, &taken).is(400),
        api.patch(uuid(&instance), &json!({ "n_vcpus": 2 })).is(400),
    ];
    for refused in refusals {
        has(&refused["detail"], "restored");
    }
    api.delete(uuid(&instance)).is(204);
}

#[test]
fn a_plan_that_is_set_again_is_the_same_and_each_change_is_recorded() {
    let (_server, api) = start();
    let instance = running(&api);
    let path = format!("/api/instance/{}/snapshot-plan/", uuid(&instance));
    let set = |body: Value| api.send("PUT", &path, &body).is(200);
    let first = set(json!({ "every_h": 24, "keep": 7 }));
    let again = set(json!({ "every_h": 24, "keep": 7 }));
    assert_eq!(again["created_at"], first["created_at"]);
    set(json!({ "every_h": 1, "keep": 2, "keep_days": 3 }));
    api.raw("DELETE", &path, None).is(204);
    assert_eq!(count(&api, &instance, "snapshot-plan-set"), 2);
    assert_eq!(count(&api, &instance, "snapshot-plan-removed"), 1);
    let log = api.get("/api/audit/").is(200).to_string();
    has(&log, "instance.plan-snapshots");
}

#[test]
fn a_suspended_user_takes_no_snapshot_and_keeps_those_there_are() {
    let (server, api) = start();
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    let suspend = ["suspend", "--user", ANN, "--reason", "unpaid"];
    server.cli(&suspend).unwrap();
    let refused = take(&api, &instance, "other").is(400);
    has(&refused["detail"], "unpaid");
    has(&clone(&api, &taken).is(400)["detail"], "unpaid");
    until_true("the snapshot is there", || {
        one(&api, &taken).is(200)["state"] == "ready"
    });
    delete(&api, &taken).is(204);
}
