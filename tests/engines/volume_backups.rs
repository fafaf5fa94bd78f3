//! Backups of a volume in a bucket, and volumes that are made from them.

use crate::backups::{SETTINGS, bucket};
use crate::context::EngineContext;
use crate::lab::{Lab as _, inside, text, uuid};
use crate::volumes::{FILL, are_made, made, none_is_left, ready, removed, volume, with};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use wharf_testkit::object_store::ObjectStore;
use wharf_tests::{Api, eventually, interval, until};

const DEADLINE: Duration = Duration::from_secs(180);

/// Fills a volume with all kinds of entries, and with more directories at its root than an image may have.
const TREE: &str = "cd /data && mkdir -m 2750 a && echo one > a/one && ln a/one a/two && ln -s ../a/one a/link && \
    ln -s /etc a/away && mkfifo a/pipe && install -m 4711 /bin/true a/setuid && \
    echo long > \"a/$(printf 'ä%.0s' $(seq 90))\" && sudo sh -c 'echo root > a/root; chown 7:70 a/root' && \
    dd if=/dev/urandom of=random bs=1M count=100 status=none && touch -d 2001-02-03T04:05:06Z a && \
    seq -f 'many-%g' 5000 | xargs mkdir && chmod 711 . && sync";

/// Prints all entries of a volume and its root, with the hashes of files.
const LIST: &str = "cd $DIR && { find . ! -type d -printf '%P %y %m %U %G %s %l %n %Ts\\n'; \
    find . -type d -printf '%P %m %U %G %Ts\\n'; } | sort > /tmp/list && \
    sudo find . -type f -print0 | sort -z | sudo xargs -0 sha256sum >> /tmp/list && cat /tmp/list";

fn list(instance: &Value, directory: &str) -> Result<String> {
    inside(instance, &LIST.replace("$DIR", directory))
}

/// Compares two lists of entries.
fn same(before: &str, after: &str) -> Result<()> {
    let lines = |list: &str| list.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (before, after) = (lines(before), lines(after));
    let differ: Vec<_> = before.symmetric_difference(&after).take(6).collect();
    ensure!(differ.is_empty(), "they differ in {differ:#?}");
    Ok(())
}

/// A volume is sent, and comes back with its size and all of its content, also after kills of the engine.
pub fn tour(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served(SETTINGS)?;
    if !are_made(&api)? {
        println!("SKIPPED: this node makes no volumes");
        return server.finish();
    }
    let directory = tempfile::tempdir()?;
    let store = ObjectStore::start(directory.path())?;
    let added = api.send("POST", "/api/bucket/", &bucket(&store))?;
    added.expect(201)?;
    made(&api, "data")?;
    let one = with(&api, &json!([{ "volume": "data", "path": "/data" }]))?;
    inside(&one, TREE)?;
    let listed = list(&one, "/data")?;
    let refused = send(&api, "data")?;
    ensure!(refused.status == 400, "it is written: {}", refused.body);
    api.act(uuid(&one), "stop")?.expect(200)?;
    api.wait_for(uuid(&one), "exited")?;

    let backup = begun(&api, "data")?;
    until_requested(&store)?;
    engine.crash(|| Ok(()))?;
    let done = ended(&api, &backup)?;
    ensure!(done["state"] == "done", "{done}");
    println!(
        "{} bytes sent, with a kill of the engine",
        done["content_bytes"]
    );

    store.requests();
    create(&api, "copy", &backup)?;
    until_requested(&store)?;
    interval(Duration::from_millis(300));
    engine.crash(|| Ok(()))?;
    ready(&api, "copy")?;
    api.act(uuid(&one), "restart")?.expect(200)?;
    let mounts = json!([{ "volume": "copy", "path": "/copy" }]);
    let two = with(&api, &mounts)?;
    let copied = list(&two, "/copy")?;
    same(&listed, &copied)?;
    let look = "echo more >> /copy/a/one && rm /copy/random && stat -c '%a' /copy";
    ensure!(inside(&two, look)? == "711");
    let took: u32 = inside(&two, &FILL.replace("/data", "/copy"))?.parse()?;
    ensure!((900..=1100).contains(&took), "it took {took} MiB");
    let again = eventually("the first instance runs", DEADLINE, || {
        Ok(list(&one, "/data").ok())
    })?;
    same(&listed, &again).context("the volume itself has changed")?;

    // A hole takes its whole room in the copy, which has none.
    inside(&one, "truncate -s 1200M /data/hole && sync")?;
    api.act(uuid(&one), "stop")?.expect(200)?;
    api.wait_for(uuid(&one), "exited")?;
    let large = begun(&api, "data")?;
    let done = ended(&api, &large)?;
    ensure!(done["state"] == "done", "{done}");
    create(&api, "large", &large)?;
    let failed = eventually("a volume without room is in error", DEADLINE, || {
        let now = volume(&api, "large")?;
        Ok((now["state"] != "creating").then_some(now))
    })?;
    ensure!(failed["state"] == "error", "{failed}");
    let why = text(&failed["reason"]);
    ensure!(why.contains("did not come"), "{why}");
    for instance in [&one, &two] {
        engine.remove(&api, instance)?;
    }
    for name in ["data", "copy", "large"] {
        removed(&api, name)?;
    }
    none_is_left(engine)?;
    server.finish()
}

fn send(api: &Api, name: &str) -> Result<wharf_tests::Answer> {
    let path = format!("/api/volume/{name}/backup/");
    api.send("POST", &path, &json!({ "bucket": "store" }))
}

/// Whether the engine makes backups of a volume, which an instance writes.
pub fn are_made_of(api: &Api, name: &str) -> Result<bool> {
    let refused = send(api, name)?;
    Ok(!refused
        .body
        .to_string()
        .contains("makes no backups of volumes"))
}

pub fn begun(api: &Api, name: &str) -> Result<String> {
    let begun = until("the volume is at rest", || {
        let answer = send(api, name)?;
        Ok((answer.status != 400).then_some(answer))
    })?;
    Ok(text(&begun.expect(201)?["id"]).to_owned())
}

pub fn ended(api: &Api, backup: &str) -> Result<Value> {
    eventually("the backup ends", DEADLINE, || {
        let now = api.get(&format!("/api/backup/{backup}/"))?.expect(200)?;
        Ok((now["state"] != "running").then_some(now))
    })
}

fn until_requested(store: &ObjectStore) -> Result<()> {
    eventually("the store has a request for content", DEADLINE, || {
        let requests = store.requests();
        let is_content = |request: &String| request.contains("/content");
        Ok(requests.iter().any(is_content).then_some(()))
    })
}

fn create(api: &Api, name: &str, backup: &str) -> Result<()> {
    let body = json!({ "name": name, "size_gib": 1, "backup": backup });
    let created = api.send("POST", "/api/volume/", &body)?;
    created
        .expect(201)
        .context("a volume from the backup")
        .map(drop)
}
