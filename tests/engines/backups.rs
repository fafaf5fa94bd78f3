//! Backups of an instance in a bucket, and an instance that is made from one on the engine of another node.

use crate::grow::{LIST, host_key, same};
use crate::lab::{Lab as _, inside, text};
use crate::moves::{Apart, DEADLINE, MEM_GIB, MUCH, NAMES};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use wharf_tests::{Login, eventually, until};

/// The object store is on the loopback network.
pub const SETTINGS: &str = "[buckets]\nhttp = true\nallow = [\"127.0.0.0/8\"]\n";

/// A request that adds the bucket of a store.
pub fn bucket(store: &ObjectStore) -> Value {
    json!({
        "name": "store", "endpoint": store.url, "bucket": BUCKET, "passphrase": "correct horse battery",
        "access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY,
    })
}

/// Backs the instance up, deletes it, and makes another one from the backup.
pub fn tour(apart: &mut Apart) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = ObjectStore::start(directory.path())?;
    let added = apart.api.send("POST", "/api/bucket/", &bucket(&store))?;
    added.expect(201)?;
    let (listed, first) = (content(apart)?, apart.now()?);
    let key = host_key(&first)?;
    let from = apart.place()?;

    let began = Instant::now();
    let backup = begin(apart)?;
    let done = ended(apart, &backup)?;
    ensure!(done["state"] == "done", "{done}");
    println!(
        "{} bytes backed up in {:.1?}",
        done["content_bytes"],
        began.elapsed()
    );
    let now = apart.now()?;
    ensure!(now["state"] == "running", "{now}");
    ensure!(content(apart)? == listed, "the instance itself has changed");
    nothing_left(apart)?;

    // The next start of a killed server completes its upload.
    store.requests();
    let killed = begin(apart)?;
    eventually("an upload is under way", DEADLINE, || {
        let state = state(apart, &killed)?;
        ensure!(state["state"] == "running", "ended unseen: {state}");
        let requests = store.requests();
        Ok(requests
            .iter()
            .any(|request| request.contains("partNumber=2"))
            .then_some(()))
    })?;
    apart.server.kill()?;
    apart.server.run()?;
    apart.api = apart.server.again(&apart.api);
    let done = ended(apart, &killed)?;
    ensure!(done["state"] == "done", "{done}");
    nothing_left(apart)?;
    eventually("the upload of the killed server ends", DEADLINE, || {
        Ok(store.uploads().is_empty().then_some(()))
    })?;
    println!("kill -9 of the server: the backup is complete");

    // Its engine is destroyed with everything on it, as far as the instance can tell.
    apart.api.delete(&apart.id)?.expect(204)?;
    apart.engines[from].gone(&first)?;
    let began = Instant::now();
    let body =
        json!({ "name": "back", "public_key": apart.key.public, "mem_gib": MEM_GIB, "n_vcpus": 1 });
    let path = format!("/api/backup/{killed}/restore/");
    let made = apart.api.send("POST", &path, &body)?.expect(201)?;
    let original = std::mem::replace(&mut apart.id, text(&made["uuid"]).to_owned());
    ensure!(apart.id != original, "{made}");
    let now = up(apart)?;
    println!("restored in {:.1?}", began.elapsed());
    ensure!(
        inside(&now, "id -un")? == "user",
        "the new password opens nothing"
    );
    same(&listed, &content(apart)?)?;
    let password = "original_service_password";
    ensure!(
        now[password] != first[password],
        "the password of the original"
    );
    let own = until("SSH answers", || Ok(host_key(&now).ok()))?;
    ensure!(own != key, "the host key of the original");
    apart.engines[apart.place()?].has_size(&now, (1, MEM_GIB))?;
    let much = apart.root(MUCH);
    apart.root("rm -f /root/much")?;
    ensure!(much.is_err(), "11 GiB fit on a disk of 10");
    // It stops and starts as any other.
    apart.api.act(&apart.id, "stop")?.expect(200)?;
    apart.api.wait_for(&apart.id, "exited")?;
    apart.api.act(&apart.id, "restart")?.expect(200)?;
    apart.api.wait_for(&apart.id, "running")?;
    Login::Key(&apart.key).wait_for_login(&apart.now()?)?;
    same(&listed, &content(apart)?)?;

    // A flipped byte is found before the content counts.
    let object = store.file(&format!("wharf/{backup}/content"));
    let mut bytes = std::fs::read(&object)?;
    let middle = bytes.len() / 2;
    let byte = bytes.get_mut(middle).context("an empty object")?;
    *byte ^= 1;
    std::fs::write(&object, bytes)?;
    let body = json!({ "name": "bent", "n_vcpus": 1, "mem_gib": 1 });
    let path = format!("/api/backup/{backup}/restore/");
    let bent = apart.api.send("POST", &path, &body)?.expect(201)?;
    let bent = text(&bent["uuid"]);
    apart.api.wait_for(bent, "error")?;
    apart.api.delete(bent)?.expect(204)?;

    let last = rescued(apart)?;
    let backups = [&backup, &killed, &last];
    for id in backups {
        let path = format!("/api/backup/{id}/");
        apart.api.send("DELETE", &path, &Value::Null)?.expect(204)?;
    }
    eventually("the objects are gone", DEADLINE, || {
        let left = backups.map(|id| store.file(&format!("wharf/{id}/content")));
        Ok(left.iter().all(|file| !file.exists()).then_some(()))
    })?;
    apart.api.delete(&apart.id)?.expect(204)?;
    for engine in &apart.engines {
        engine.gone(&now)?;
    }
    Ok(())
}

/// The instance's engine dies for good, and the operator brings the instance back on the other one. Returns its backup.
fn rescued(apart: &mut Apart) -> Result<String> {
    let (listed, before) = (content(apart)?, apart.now()?);
    let backup = begin(apart)?;
    let done = ended(apart, &backup)?;
    ensure!(done["state"] == "done", "{done}");
    nothing_left(apart)?;
    let from = apart.place()?;
    let Apart {
        engines, server, ..
    } = &mut *apart;
    server.cli(&["node", "resume", NAMES[1 - from]])?;
    let began = Instant::now();
    engines[from].crash(|| {
        eventually("the node is given up", DEADLINE, || {
            let lost = ["node", "lost", NAMES[from], "--yes"];
            Ok(server.cli(&lost).ok())
        })?;
        let said = server.cli(&["node", "restore", NAMES[from]])?;
        ensure!(said.contains("1 are made again, 0 stay lost"), "{said}");
        Ok(())
    })?;
    let now = up(apart)?;
    println!("back on the other engine in {:.1?}", began.elapsed());
    ensure!(apart.place()? == 1 - from, "it is where it was lost");
    for field in ["uuid", "name", "original_service_password"] {
        ensure!(now[field] == before[field], "{field}: {before} {now}");
    }
    same(&listed, &content(apart)?)?;
    Ok(backup)
}

/// The list of files, without what differs between an instance and one that is made from its backup.
fn content(apart: &Apart) -> Result<String> {
    let listed = apart.root(LIST)?;
    let is_own = |line: &str| line.starts_with("etc") && !line.starts_with("etc/mtab");
    let is_common = |line: &&str| !is_own(line) && !line.contains("/etc/shadow");
    let common: Vec<_> = listed.lines().filter(is_common).collect();
    Ok(common.join("\n"))
}

fn begin(apart: &Apart) -> Result<String> {
    let path = format!("/api/instance/{}/backup/", apart.id);
    let begun = apart
        .api
        .send("POST", &path, &json!({ "bucket": "store" }))?;
    Ok(text(&begun.expect(201)?["id"]).to_owned())
}

fn state(apart: &Apart, backup: &str) -> Result<Value> {
    apart
        .api
        .get(&format!("/api/backup/{backup}/"))?
        .expect(200)
}

fn ended(apart: &Apart, backup: &str) -> Result<Value> {
    eventually("the backup ends", DEADLINE, || {
        let now = state(apart, backup)?;
        Ok((now["state"] != "running").then_some(now))
    })
}

/// Waits until no snapshot and no carrier of a backup is left.
fn nothing_left(apart: &Apart) -> Result<()> {
    eventually("the snapshots of backups go", DEADLINE, || {
        let listed = apart.api.get("/api/snapshot/")?.expect(200)?;
        let mut left = listed.as_array().map_or(0, Vec::len);
        for engine in &apart.engines {
            let images = engine.ask("GET", "/images/json", None)?.to_string();
            let containers = engine
                .ask("GET", "/containers/json?all=true", None)?
                .to_string();
            left += images.matches("wharf-snapshot/").count();
            left += containers.matches("wharf-carrier-").count();
        }
        Ok((left == 0).then_some(()))
    })
}

/// Waits until the instance runs and takes logins.
fn up(apart: &Apart) -> Result<Value> {
    eventually("the instance runs", DEADLINE, || {
        let now = apart.now()?;
        ensure!(now["state"] != "error", "{now}");
        Ok((now["state"] == "running").then_some(()))
    })?;
    let now = apart.now()?;
    Login::Key(&apart.key).wait_for_login(&now)?;
    Ok(now)
}
