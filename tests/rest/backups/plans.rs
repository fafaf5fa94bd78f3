//! Plans that make backups by the clock.

use super::volumes::{AT_REST, delete, empty};
use super::{LOOPBACK, Store, done, forget, path, until_state, without_snapshots};
use crate::bill::fake_clock;
use crate::snapshots::plans::{WHILE, pass};
use crate::snapshots::{count, until_count, until_event};
use crate::{Expected, has, running, until_true, uuid, wait_until, with};
use serde_json::{Value, json};
use tempfile::TempDir;
use wharf_testkit::object_store::{BUCKET, Fault};
use wharf_tests::{Api, FakeClock, Ports, Server, Shell, interval, lasting_node};

/// A server with a bucket, whose instances outlive it.
struct Planned {
    server: Server,
    api: Api,
    store: Store,
    clock: FakeClock,
    instance: Value,
    _engine: TempDir,
}

impl Planned {
    fn start() -> Option<Self> {
        let clock = fake_clock()?;
        let (node, engine) = lasting_node("one", AT_REST).unwrap();
        let settings = format!("{}{LOOPBACK}{node}", Ports::take().settings());
        let server = Server::start_in(&settings, &clock.environment())
            .unwrap()
            .checked_at_end();
        let api = server.user("ann@example.com").unwrap();
        let store = Store::start();
        store.add(&api);
        Some(Self {
            instance: running(&api),
            _engine: engine,
            server,
            api,
            store,
            clock,
        })
    }

    fn path(&self) -> String {
        format!("/api/instance/{}/backup-plan/", uuid(&self.instance))
    }

    fn set(&self, mut body: Value) -> Value {
        body["bucket"] = json!("offsite");
        self.api.send("PUT", &self.path(), &body).is(200)
    }

    fn pass(&self, hours: u32) {
        pass(&self.server, &self.clock, hours);
    }

    fn count(&self, kind: &str) -> usize {
        count(&self.api, &self.instance, kind)
    }

    fn until_count(&self, kind: &str, n: usize) {
        until_count(&self.api, &self.instance, kind, n);
    }

    /// The backups in a state, the newest first.
    fn all(&self, state: &str) -> Vec<Value> {
        let listed = self.api.get("/api/backup/").is(200);
        let mut listed = listed.as_array().unwrap().clone();
        listed.retain(|backup| backup["state"] == state);
        listed
    }
}

#[test]
fn a_backup_that_is_late_is_made_once_also_after_a_kill() {
    let Some(mut planned) = Planned::start() else {
        return;
    };
    planned.api.get(&planned.path()).is(404);
    let set = planned.set(json!({ "every_h": 2, "keep": 5 }));
    assert_eq!(set["bucket_name"], "offsite");
    assert_eq!(planned.api.get(&planned.path()).is(200), set);
    // Five due times pass.
    planned.pass(11);
    planned.until_count("backup-done", 1);
    without_snapshots(&planned.api);
    // The next one is on its way when the server is killed.
    let busy = Fault::Answer(503, "SlowDown");
    let requests = format!("/{BUCKET}/");
    planned.store.s3.misbehave(&requests, usize::MAX, busy);
    planned.pass(13);
    planned.until_count("backup-created", 2);
    let backup = planned.all("running").remove(0);
    assert_eq!(backup["planned"], true);
    planned.server.kill().unwrap();
    planned.store.s3.behave();
    planned.server.run().unwrap();
    planned.api = planned.server.again(&planned.api);
    until_state(&planned.api, &backup, "done");
    without_snapshots(&planned.api);
    interval(WHILE);
    for kind in ["backup-created", "backup-done"] {
        assert_eq!(planned.count(kind), 2, "{kind}");
    }
    assert_eq!(planned.count("backup-plan-failed"), 0);
    let created = until_event(&planned.api, &planned.instance, "backup-created");
    assert_eq!(created["actor"]["kind"], "system");
}

#[test]
fn the_oldest_backup_goes_once_the_new_one_is_done() {
    let Some(planned) = Planned::start() else {
        return;
    };
    let api = &planned.api;
    let own = done(api, &planned.instance);
    let created = until_event(api, &planned.instance, "backup-created");
    assert_eq!(created["actor"]["kind"], "key");
    planned.set(json!({ "every_h": 1, "keep": 2 }));
    for n in 1..=2 {
        planned.pass(u32::try_from(n).unwrap() + 1);
        planned.until_count("backup-done", n + 1);
    }
    let before = planned.all("done");
    assert_eq!(before.len(), 3, "{before:?}");
    // Until the new one is done, all are there.
    let busy = Fault::Answer(503, "SlowDown");
    let requests = format!("/{BUCKET}/");
    planned.store.s3.misbehave(&requests, usize::MAX, busy);
    planned.pass(4);
    planned.until_count("backup-created", 4);
    assert_eq!(planned.all("done"), before);
    planned.store.s3.behave();
    planned.until_count("backup-done", 4);
    let oldest = before[1]["id"].as_str().unwrap();
    let object = planned.store.s3.file(&format!("wharf/{oldest}/content"));
    until_true("the oldest one is gone", || !object.exists());
    let after = planned.all("done");
    assert_eq!(after.len(), 3, "{after:?}");
    assert_eq!((&after[1], &after[2]), (&before[0], &before[2]));
    assert_eq!(after[2]["id"], own["id"], "only planned ones go");
    // Nothing is new in an instance that stays stopped.
    api.act(uuid(&planned.instance), "stop").is(200);
    api.wait_for(uuid(&planned.instance), "exited").unwrap();
    planned.pass(6);
    planned.until_count("backup-done", 5);
    planned.pass(8);
    interval(WHILE);
    assert_eq!(planned.count("backup-created"), 5);
    assert_eq!(planned.count("backup-plan-failed"), 0);
}

#[test]
fn failures_are_told_once_and_a_plan_keeps_its_bucket() {
    let Some(planned) = Planned::start() else {
        return;
    };
    let api = &planned.api;
    let limit = |snapshots: &str| {
        let args = ["user", "limit", "ann@example.com", "--snapshots", snapshots];
        planned.server.cli(&args).unwrap();
    };
    limit("0");
    planned.set(json!({ "every_h": 4, "keep": 1, "keep_days": 3 }));
    planned.pass(5);
    let failed = until_event(api, &planned.instance, "backup-plan-failed");
    has(&failed["message"], "quota");
    interval(WHILE);
    assert_eq!(planned.count("backup-plan-failed"), 1);
    // There is room before the next due time. Of the backups that fail, the newest stays.
    limit("unlimited");
    let denied = Fault::Answer(403, "AccessDenied");
    let requests = format!("/{BUCKET}/");
    planned.store.s3.misbehave(&requests, usize::MAX, denied);
    for n in 1..=2 {
        planned.pass(u32::try_from(4 * n).unwrap() + 3);
        planned.until_count("backup-failed", n);
    }
    planned.store.s3.behave();
    planned.pass(15);
    planned.until_count("backup-done", 1);
    let failed = planned.all("failed");
    assert_eq!(failed.len(), 1, "{failed:?}");

    let refused = api.send("DELETE", "/api/bucket/offsite/", &Value::Null);
    let refused = refused.is(400);
    let name = planned.instance["name"].as_str().unwrap();
    has(&refused["detail"], name);
    api.send("DELETE", &planned.path(), &Value::Null).is(204);
    api.send("DELETE", &planned.path(), &Value::Null).is(404);
    for kind in ["backup-plan-set", "backup-plan-removed"] {
        assert_eq!(planned.count(kind), 1, "{kind}");
    }
    // One that is deleted leaves the bucket before it is forgotten.
    let done = planned.all("done").remove(0);
    let object = format!("wharf/{}/content", done["id"].as_str().unwrap());
    let busy = Fault::Answer(503, "SlowDown");
    planned.store.s3.misbehave("DELETE ", 2, busy);
    api.send("DELETE", &path(&done), &Value::Null).is(204);
    let refused = api.send("DELETE", "/api/bucket/offsite/", &Value::Null);
    has(&refused.is(400)["detail"], "still being removed");
    forget(api);
    assert!(!planned.store.s3.file(&object).exists());
}

#[test]
fn a_plan_of_a_volume_makes_backups_while_nothing_writes_it() {
    let Some(planned) = Planned::start() else {
        return;
    };
    let api = &planned.api;
    let volume = empty(api, "data");
    let plan = "/api/volume/data/backup-plan/";
    api.get(plan).is(404);
    let body = json!({ "bucket": "offsite", "every_h": 1, "keep": 1 });
    let unknown = json!({ "bucket": "none", "every_h": 1, "keep": 1 });
    let refused = api.send("PUT", plan, &unknown).is(400);
    has(&refused["bucket"][0], "no such bucket");
    let set = api.send("PUT", plan, &body).is(200);
    assert_eq!(set["bucket_name"], "offsite");
    assert_eq!(api.get(plan).is(200), set);
    let until_done = || {
        let listed = wait_until("the volume has one backup, which is done", || {
            let listed = api.get("/api/backup/?volume=data").is(200);
            let listed = listed.as_array().unwrap().clone();
            let is_done = listed.len() == 1 && listed[0]["state"] == "done";
            Ok(is_done.then_some(listed))
        });
        assert_eq!(listed[0]["planned"], true);
        listed[0]["id"].clone()
    };
    planned.pass(2);
    let first = until_done();

    // Where volumes are copied at rest, an instance that writes the volume is in the way, and its owner is told once
    // for each time.
    let mounts = json!([{ "volume": "data", "path": "/data" }]);
    let writer = api.create(&with("container", json!({ "volumes": mounts })));
    let writer = writer.is(201);
    api.wait_for(uuid(&writer), "running").unwrap();
    let failed = || {
        let events = api.get("/api/event/?after=0&limit=1000").is(200);
        let mut events = events.as_array().unwrap().clone();
        let kind = "backup-plan-failed";
        events.retain(|event| event["volume"] == volume["id"] && event["type"] == kind);
        events
    };
    planned.pass(4);
    until_true("the owner is told", || !failed().is_empty());
    interval(WHILE);
    let told = failed();
    assert_eq!(told.len(), 1, "{told:?}");
    has(&told[0]["message"], "writes volume data");
    assert_eq!(until_done(), first);

    // The next one takes the place of the first.
    api.delete(uuid(&writer)).is(204);
    wait_until("nothing writes the volume", || {
        let now = api.get("/api/volume/data/").is(200);
        Ok((now["attached_to"] == json!([])).then_some(()))
    });
    planned.pass(9);
    wait_until("there is another backup", || {
        let listed = api.get("/api/backup/?volume=data").is(200);
        Ok((listed[0]["id"] != first).then_some(()))
    });
    until_done();
    let refused = api.send("DELETE", "/api/bucket/offsite/", &Value::Null);
    has(refused.is(400), "plan of data makes backups");
    let shell = Shell::signed_in(&planned.server, "ann@example.com").unwrap();
    let show = ["bucket", "plan", "show", "data", "--volume"];
    shell.json(&show, "GET", plan, 200).unwrap();
    shell
        .run(&["bucket", "plan", "rm", "data", "--volume"])
        .unwrap();
    api.get(plan).is(404);
    api.send("PUT", plan, &body).is(200);
    delete(api, "data").is(204);
    forget(api);
}
