//! Buckets, the backups in them, and the instances made from these.

mod commands;
mod plans;
mod rescue;
mod rescued_volumes;
mod volumes;

use crate::moves::Cluster;
use crate::{Expected, has, start, start_on, until_true, uuid, wait_until};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;
use wharf_buckets::{BackupKey, Manifest};
use wharf_domain::secret::SecretText;
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, Fault, ObjectStore, SECRET_ACCESS_KEY};
use wharf_tests::{Api, called, simulated_node, small};

const LOOPBACK: &str = "[buckets]\nhttp = true\nallow = [\"127.0.0.0/8\"]\n";
const PASSPHRASE: &str = "correct horse battery staple";

/// An object store with its directory.
struct Store {
    s3: ObjectStore,
    _directory: TempDir,
}

impl Store {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            s3: ObjectStore::start(directory.path()).unwrap(),
            _directory: directory,
        }
    }

    /// A request that adds the bucket of the store.
    fn bucket(&self) -> Value {
        json!({
            "name": "offsite",
            "endpoint": self.s3.url,
            "bucket": BUCKET,
            "access_key_id": ACCESS_KEY_ID,
            "secret_access_key": SECRET_ACCESS_KEY,
            "passphrase": PASSPHRASE,
        })
    }

    fn add(&self, api: &Api) -> Value {
        api.send("POST", "/api/bucket/", &self.bucket()).is(201)
    }
}

/// Nodes whose engines know nothing of each other.
fn nodes_apart() -> Cluster {
    nodes_with("content = true")
}

/// Nodes with these settings.
fn nodes_with(settings: &str) -> Cluster {
    let nodes = [("one", settings), ("two", settings)];
    Cluster::start_with(&nodes, |node| {
        let is_first = node.contains("name = \"one\"");
        format!("{}{node}", if is_first { LOOPBACK } else { "" })
    })
}

/// These, and an object store that has a bucket of the user.
fn apart() -> (Cluster, Store) {
    let (cluster, store) = (nodes_apart(), Store::start());
    store.add(&cluster.api);
    (cluster, store)
}

fn path(backup: &Value) -> String {
    format!("/api/backup/{}/", backup["id"].as_str().unwrap())
}

/// Begins a backup to the one bucket.
fn send(api: &Api, instance: &Value) -> Value {
    let path = format!("/api/instance/{}/backup/", uuid(instance));
    let begun = api
        .send("POST", &path, &json!({ "bucket": "offsite" }))
        .is(201);
    assert_eq!(begun["state"], "running");
    begun
}

fn now(api: &Api, backup: &Value) -> Value {
    api.get(&path(backup)).is(200)
}

fn until_state(api: &Api, backup: &Value, state: &str) -> Value {
    wait_until(&format!("the backup is {state}"), || {
        let now = now(api, backup);
        Ok((now["state"] == state).then_some(now))
    })
}

fn done(api: &Api, instance: &Value) -> Value {
    until_state(api, &send(api, instance), "done")
}

/// Waits until no snapshot is left, and holds nothing.
fn without_snapshots(api: &Api) {
    wait_until("no snapshot is left", || {
        let used = api.get("/api/quota/").is(200);
        Ok((used["n_snapshots"]["used"] == 0).then_some(()))
    });
    assert_eq!(api.get("/api/snapshot/").is(200), json!([]));
}

/// Waits for the end of a verification.
fn verified(api: &Api, backup: &Value) -> Value {
    let path = format!("{}verify/", path(backup));
    let begun = api.send("POST", &path, &Value::Null).is(200);
    assert_eq!(begun["verifying"], true);
    wait_until("the verification has ended", || {
        let now = now(api, backup);
        Ok((now["verifying"] == false).then_some(now))
    })
}

fn restore(api: &Api, backup: &Value, body: &Value) -> wharf_tests::Answer {
    let path = format!("{}restore/", path(backup));
    api.send("POST", &path, body).unwrap()
}

/// The snapshot that a backup of the instance was sent from.
fn snapshot_of(api: &Api, instance: &Value) -> Value {
    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let mut events = events.as_array().unwrap().iter();
    let taken = events
        .find(|event| event["type"] == "snapshot-created" && event["instance"] == instance["uuid"]);
    taken.unwrap()["snapshot"].clone()
}

/// Forgets the bucket, once the deleted backups have left it.
fn forget(api: &Api) {
    wait_until("the bucket is forgotten", || {
        let answer = api.send("DELETE", "/api/bucket/offsite/", &Value::Null)?;
        Ok((answer.status == 204).then_some(()))
    });
}

/// The number of the node that has the instance.
fn place(cluster: &Cluster, instance: &Value) -> usize {
    let has = |node: &usize| cluster.machines(*node).contains_key(uuid(instance));
    (0..2).find(has).unwrap()
}

/// Ends a test, after the deleted instances are gone.
fn finish(cluster: Cluster) {
    wait_until("the deleted instances are gone", || {
        let left = cluster.machines(0).len() + cluster.machines(1).len();
        Ok((left == cluster.api.list()?.len()).then_some(()))
    });
    cluster.finish();
}

#[test]
fn a_backup_is_verified_and_recovered_on_another_node() {
    let (cluster, store) = apart();
    let api = &cluster.api;
    let source = cluster.running(&small("container"));
    let from = place(&cluster, &source);
    let backup = done(api, &source);
    without_snapshots(api);
    assert_eq!(backup["instance"], source["uuid"]);
    for same in ["flavor", "n_vcpus", "disk_size_gib", "cpu_tier"] {
        assert_eq!(backup[same], source[same], "{same}");
    }
    let id = backup["id"].as_str().unwrap();
    let stored = fs::metadata(store.s3.file(&format!("wharf/{id}/content")));
    assert_eq!(backup["object_bytes"], stored.unwrap().len());
    for query in [
        "",
        "?bucket=offsite",
        &format!("?instance={}", uuid(&source)),
    ] {
        let listed = api.get(&format!("/api/backup/{query}")).is(200);
        assert_eq!(listed, json!([backup]), "{query}");
    }
    let shown = api.get("/api/bucket/offsite/").is(200);
    assert_eq!(shown["n_backups"], 1);
    assert_eq!(api.get("/api/bucket/").is(200), json!([shown]));
    assert!(verified(api, &backup)["verified_at"].is_string());

    let refused = restore(api, &backup, &json!({ "n_vcpus": 0 })).is(400);
    assert!(refused["n_vcpus"].is_array(), "{refused}");
    cluster.drain(["one", "two"][from]);
    let created = restore(api, &backup, &json!({ "name": "recovered" })).is(201);
    let recovered = api.wait_for(uuid(&created), "running").unwrap();
    assert_eq!(place(&cluster, &recovered), 1 - from);
    let machine = &cluster.machines(1 - from)[uuid(&recovered)];
    assert_eq!(machine["content_of"], snapshot_of(api, &source));
    assert_eq!(recovered["name"], "recovered");
    for own in ["original_service_password", "uuid", "lan_ipv4"] {
        assert_ne!(recovered[own], source[own], "{own}");
    }
    // The backup outlives its instance.
    cluster.delete(&source);
    let again = restore(api, &backup, &json!({})).is(201);
    api.wait_for(uuid(&again), "running").unwrap();
    let of = format!("/api/backup/?instance={}", uuid(&source));
    assert_eq!(api.get(&of).is(200)[0]["id"], backup["id"]);

    let large = cluster.running(&crate::with("container", json!({ "disk_size_gib": 20 })));
    let larger = done(api, &large);
    let refused = restore(api, &larger, &json!({ "disk_size_gib": 10 })).is(400);
    has(&refused["disk_size_gib"][0], "at least 20");
    api.send("DELETE", &path(&backup), &Value::Null).is(204);
    api.get(&path(&backup)).is(404);
    forget(api);
    let deleted = store.s3.file(&format!("wharf/{id}/content"));
    assert!(!deleted.exists(), "its objects are gone");
    for list in ["/api/bucket/", "/api/backup/"] {
        assert_eq!(api.get(list).is(200), json!([]));
    }
    let kept = larger["id"].as_str().unwrap();
    let manifest = store.s3.file(&format!("wharf/{kept}/manifest.json"));
    assert!(manifest.exists(), "the objects of a forgotten bucket stay");

    let audit = cluster.server.cli(&["audit"]).unwrap();
    for operation in [
        "bucket.add",
        "backup.create",
        "backup.delete",
        "bucket.forget",
    ] {
        has(&audit, operation);
    }
    let bytes = cluster.server.data_and_log().unwrap();
    for secret in [SECRET_ACCESS_KEY, PASSPHRASE] {
        let is_secret = |part: &[u8]| part == secret.as_bytes();
        assert!(!bytes.windows(secret.len()).any(is_secret));
        assert!(!audit.contains(secret));
    }
    finish(cluster);
}

#[test]
fn content_that_an_engine_has_taken_and_lost_is_offered_again() {
    let store = Store::start();
    let settings = "content = true, faults = [{ call = \"receive\", nth = 1, error = \"retry\", after_ms = 10 }]";
    let (_server, api) = start_on(LOOPBACK, &simulated_node("one", settings));
    store.add(&api);
    let backup = done(&api, &crate::running(&api));
    let restored = restore(&api, &backup, &json!({ "name": "back" })).is(201);
    api.wait_for(uuid(&restored), "running").unwrap();
}

#[test]
fn what_is_wrong_with_a_bucket_is_said_at_its_field() {
    let store = Store::start();
    let node = simulated_node("one", "content = true");
    let (server, api) = start_on(LOOPBACK, &node);
    let refused = |field: &str, value: Value, at: &str| {
        let mut body = store.bucket();
        body[field] = value;
        let refused = api.send("POST", "/api/bucket/", &body).is(400);
        let fields: Vec<_> = refused.as_object().unwrap().keys().collect();
        assert_eq!(fields, [at], "{refused}");
        let message = refused[at][0].as_str().unwrap().to_owned();
        assert!(!message.contains(SECRET_ACCESS_KEY), "{message}");
        message
    };
    refused("secret_access_key", json!("another"), "access_key_id");
    refused("access_key_id", json!("another"), "access_key_id");
    let missing = Fault::Answer(404, "NoSuchBucket");
    store.s3.misbehave("/missing/", usize::MAX, missing);
    refused("bucket", json!("missing"), "bucket");
    let metadata = json!("http://169.254.169.254");
    has(refused("endpoint", metadata, "endpoint"), "public address");
    refused("endpoint", json!("ftp://127.0.0.1"), "endpoint");
    refused("passphrase", json!("too short"), "passphrase");
    refused("prefix", json!("../other"), "prefix");
    refused("name", json!("-"), "name");
    assert_eq!(api.get("/api/bucket/").is(200), json!([]));
    store.add(&api);
    refused("name", json!("offsite"), "name");

    let source = crate::running(&api);
    let nowhere = json!({ "bucket": "nowhere" });
    let path = format!("/api/instance/{}/backup/", uuid(&source));
    let nowhere = api.send("POST", &path, &nowhere).is(400);
    assert_eq!(nowhere, json!({ "bucket": ["you have no such bucket"] }));
    let vm = api.create(&small("vm")).is(201);
    api.wait_for(uuid(&vm), "running").unwrap();
    let path = format!("/api/instance/{}/backup/", uuid(&vm));
    api.send("POST", &path, &json!({ "bucket": "offsite" }))
        .is(400);
    done(&api, &source);
    let mut other = store.bucket();
    other["name"] = json!("other");
    other["passphrase"] = json!("a passphrase of nobody");
    let refused = api.send("POST", "/api/bucket/", &other).is(400);
    assert!(refused["passphrase"].is_array(), "{refused}");
    // Under another prefix there is nothing that it has to open.
    other["prefix"] = json!("another");
    let added = api.send("POST", "/api/bucket/", &other).is(201);
    assert_eq!(added["n_backups"], 0);
    server.finish().unwrap();

    let (_server, api) = start();
    let refused = api.send("POST", "/api/bucket/", &store.bucket()).is(400);
    has(&refused["endpoint"][0], "https://");
}

#[test]
fn another_user_sees_neither_bucket_nor_backup() {
    let (cluster, store) = apart();
    let source = cluster.running(&small("container"));
    let backup = done(&cluster.api, &source);
    let bob = cluster.server.user("bob@example.com").unwrap();
    let id = store.add(&cluster.server.user("carol@example.com").unwrap())["id"].clone();
    for list in ["/api/bucket/", "/api/backup/"] {
        assert_eq!(bob.get(list).is(200), json!([]));
    }
    let one = path(&backup);
    let of_instance = format!("/api/instance/{}/backup/", uuid(&source));
    let of_bucket = format!("/api/bucket/{}/", id.as_str().unwrap());
    for (method, path) in [
        ("GET", "/api/bucket/offsite/".to_owned()),
        ("DELETE", "/api/bucket/offsite/".to_owned()),
        ("GET", of_bucket.clone()),
        ("DELETE", of_bucket),
        ("GET", "/api/backup/?bucket=offsite".to_owned()),
        ("GET", one.clone()),
        ("DELETE", one.clone()),
        ("POST", format!("{one}verify/")),
        ("POST", format!("{one}restore/")),
        ("POST", of_instance.clone()),
    ] {
        let body = match method {
            "POST" if path == of_instance => json!({ "bucket": "offsite" }),
            "POST" => json!({}),
            _ => Value::Null,
        };
        bob.send(method, &path, &body).is(404);
    }
    // A bucket would bring what the key does not read.
    let writer = ["key", "new", "ann@example.com", "--scope", "write"];
    let writer = cluster.server.cli(&writer).unwrap();
    let writer = Api::new(cluster.server.base_url(), writer.trim());
    for path in ["/api/bucket/", &of_instance, &format!("{one}restore/")] {
        writer.send("POST", path, &json!({})).is(403);
    }
    cluster.finish();
}

#[test]
fn a_bucket_brings_its_backups_to_another_server() {
    let (cluster, store) = apart();
    let source = cluster.running(&small("container"));
    let backup = done(&cluster.api, &source);
    let snapshot = snapshot_of(&cluster.api, &source);
    cluster.finish();

    let other = nodes_apart();
    assert_eq!(store.add(&other.api)["n_backups"], 1);
    let mut found = other.api.get("/api/backup/").is(200)[0].clone();
    for own in ["bucket", "done_at"] {
        found[own] = backup[own].clone();
    }
    assert_eq!(found, backup);
    // Right after its start, it waits for the first look at its nodes.
    let created = restore(&other.api, &found, &json!({})).is(201);
    let recovered = other.api.wait_for(uuid(&created), "running").unwrap();
    let machine = &other.machines(place(&other, &recovered))[uuid(&recovered)];
    assert_eq!(machine["content_of"], snapshot);
    assert!(verified(&other.api, &found)["verified_at"].is_string());
    other.finish();
}

#[test]
fn a_store_that_is_busy_or_hangs_is_asked_again_also_after_a_kill() {
    let (mut cluster, store) = apart();
    let source = cluster.running(&small("container"));
    let busy = Fault::Answer(503, "SlowDown");
    store.s3.misbehave(&format!("/{BUCKET}/"), 3, busy);
    done(&cluster.api, &source);
    without_snapshots(&cluster.api);

    store.s3.requests();
    store
        .s3
        .misbehave(&format!("/{BUCKET}/"), usize::MAX, Fault::Hang);
    let begun = send(&cluster.api, &source);
    until_true("the store has a request", || {
        !store.s3.requests().is_empty()
    });
    // The request that hangs does so until the kill.
    store.s3.behave();
    cluster.restart_server();
    until_state(&cluster.api, &begun, "done");
    without_snapshots(&cluster.api);
    until_true("no upload is left", || store.s3.uploads().is_empty());

    for calls in [0, 4, 12] {
        let begun = send(&cluster.api, &source);
        called(&cluster.api, calls).unwrap();
        cluster.restart_server();
        until_state(&cluster.api, &begun, "done");
        without_snapshots(&cluster.api);
        let created = restore(&cluster.api, &begun, &json!({})).is(201);
        called(&cluster.api, calls).unwrap();
        cluster.restart_server();
        cluster.api.wait_for(uuid(&created), "running").unwrap();
        cluster.delete(&created);
    }
    finish(cluster);
}

/// The owner of a bucket can make a small object of a large content, which some engines would store in full first.
#[test]
fn a_backup_that_is_larger_than_its_disk_is_refused_before_it_comes() {
    let (cluster, store) = apart();
    let api = &cluster.api;
    let source = cluster.running(&small("container"));
    let kept = done(api, &source);
    let id = kept["id"].as_str().unwrap();
    let file = store.s3.file(&format!("wharf/{id}/manifest.json"));
    let mut manifest = Manifest::parse(&fs::read(&file).unwrap()).unwrap();
    let key = BackupKey::unwrap(&manifest.key, &SecretText::new(PASSPHRASE)).unwrap();
    manifest.tar_bytes = 10_000_000_000_000;
    fs::write(&file, manifest.signed(&key.unwrap()).unwrap()).unwrap();
    store.s3.requests();
    let created = restore(api, &kept, &json!({})).is(201);
    api.wait_for(uuid(&created), "error").unwrap();
    has(cluster.server.log(), "the backup has 9314 GiB");
    let requests = store.s3.requests();
    let read = requests.iter().find(|request| request.contains("/content"));
    assert_eq!(read, None);
    cluster.delete(&created);
    api.send("DELETE", &path(&kept), &Value::Null).is(204);
    without_snapshots(api);
    forget(api);
    finish(cluster);
}

#[test]
fn a_backup_that_is_refused_half_way_fails_and_one_whose_store_is_gone_can_be_deleted() {
    let (cluster, store) = apart();
    let api = &cluster.api;
    let source = cluster.running(&small("container"));
    let kept = done(api, &source);
    let denied = Fault::Answer(403, "AccessDenied");
    store
        .s3
        .misbehave(&format!("/{BUCKET}/"), usize::MAX, denied);
    let failed = until_state(api, &send(api, &source), "failed");
    let reason = failed["reason"].as_str().unwrap();
    assert!(!reason.contains(ACCESS_KEY_ID), "{reason}");
    restore(api, &failed, &json!({})).is(400);
    without_snapshots(api);
    store.s3.behave();

    // Other bytes are found, and never start.
    let id = kept["id"].as_str().unwrap();
    let file = store.s3.file(&format!("wharf/{id}/content"));
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let wrong = verified(api, &kept);
    assert!(
        wrong["verified_at"].is_null() && wrong["reason"].is_string(),
        "{wrong}"
    );
    let created = restore(api, &kept, &json!({})).is(201);
    api.wait_for(uuid(&created), "error").unwrap();
    cluster.delete(&created);

    drop(store);
    let begun = send(api, &source);
    api.send("DELETE", "/api/bucket/offsite/", &Value::Null)
        .is(400);
    api.send("DELETE", &path(&begun), &Value::Null).is(204);
    without_snapshots(api);
    forget(api);
    finish(cluster);
}
