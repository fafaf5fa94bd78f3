//! Snapshots: content that comes back and goes on in clones, logins and host keys of each, and sizes that hold.

use crate::context::EngineContext;
use crate::lab::{Lab, after_observations, inside, restarted, running, state, text, user, uuid};
use crate::volumes::are_made;
use crate::without_room;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_tests::lanes::is_whole_run;
use wharf_tests::{Api, caught, eventually, small, until};

/// Files of each kind, and the hashes of all.
pub const FILL: &str = "mkdir -p d/sub && for i in 1 2 3; do head -c 5000000 /dev/urandom > d/$i; done; \
    ln -f d/1 d/sub/hard && ln -sf ../2 d/sub/soft && chmod 600 d/3 && sudo chown 1234:root d/2 && \
    sudo sh -c 'echo beside > /srv/beside'; sync";
pub const HASHES: &str = "cd && { find d /srv/beside -printf '%p %y %m %U %n %l\\n'; find d /srv/beside -type f -exec sudo sha256sum {} +; } \
    | sort | sha256sum";
/// A program that writes all the time.
const WRITER: &str = "nohup sh -c 'i=0; while :; do i=$((i+1)); echo $i >> ~/ticks; sleep 0.05; done' >/dev/null 2>&1 &";

fn send(api: &Api, path: &str, body: &Value) -> Result<Value> {
    let answer = api.send("POST", path, body)?;
    ensure!(
        (200..300).contains(&answer.status),
        "{path}: {}",
        answer.body
    );
    let status = answer.status;
    answer.expect(status)
}

fn host_key(instance: &Value) -> Result<String> {
    inside(instance, "cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub")
}

pub fn one(api: &Api, snapshot: &Value) -> Result<Value> {
    let path = format!("/api/snapshot/{}/", text(&snapshot["id"]));
    api.get(&path)?.expect(200)
}

/// Requests a snapshot.
pub fn begun(api: &Api, instance: &Value, name: &str) -> Result<Value> {
    let path = format!("/api/instance/{}/snapshot/", uuid(instance));
    send(api, &path, &json!({ "name": name }))
}

/// Waits until a snapshot is ready.
pub fn ready(api: &Api, snapshot: &Value) -> Result<Value> {
    until("the snapshot is ready", || {
        let now = one(api, snapshot)?;
        ensure!(now["state"] != "error", "{now}");
        Ok((now["state"] == "ready").then_some(now))
    })
}

/// Takes a snapshot, and waits until it is ready.
pub fn taken(api: &Api, instance: &Value, name: &str) -> Result<Value> {
    ready(api, &begun(api, instance, name)?)
}

/// Makes an instance from a snapshot, and waits for the first login.
pub fn cloned(api: &Api, snapshot: &Value) -> Result<Value> {
    let clone = made(api, snapshot)?;
    user(&clone).wait_for_login(&clone)?;
    Ok(clone)
}

/// Makes an instance from a snapshot.
pub fn made(api: &Api, snapshot: &Value) -> Result<Value> {
    let clone = requested(api, snapshot)?;
    api.wait_for(uuid(&clone), "running")
}

/// Requests an instance from a snapshot.
pub fn requested(api: &Api, snapshot: &Value) -> Result<Value> {
    let mut body = small("container");
    let fields = body.as_object_mut().context("no object")?;
    fields.retain(|name, _| !["flavor", "resource_type"].contains(&name.as_str()));
    let path = format!("/api/snapshot/{}/clone/", text(&snapshot["id"]));
    send(api, &path, &body)
}

/// Restores a snapshot of an instance, and waits for a login.
pub fn restored(api: &Api, instance: &Value, snapshot: &Value) -> Result<Value> {
    let again = brought_back(api, instance, snapshot)?;
    user(&again).wait_for_login(&again)?;
    Ok(again)
}

/// Stops an instance, restores a snapshot of it, and starts it again.
pub fn brought_back(api: &Api, instance: &Value, snapshot: &Value) -> Result<Value> {
    let id = uuid(instance);
    api.act(id, "stop")?.expect(200)?;
    api.wait_for(id, "exited")?;
    restoring(api, snapshot)?;
    // The restart waits for the restore.
    api.act(id, "restart")?.expect(200)?;
    api.wait_for(id, "running")
}

/// Requests a restore of a stopped instance.
pub fn restoring(api: &Api, snapshot: &Value) -> Result<()> {
    let path = format!("/api/snapshot/{}/restore/", text(&snapshot["id"]));
    send(api, &path, &json!({})).map(drop)
}

/// Starts an instance whose restore was interrupted, and waits for a login. A restart fails while the node is out of
/// reach.
pub fn started(api: &Api, instance: &Value) -> Result<Value> {
    let id = uuid(instance);
    until("it runs again", || {
        let now = state(api, instance)?;
        if now == "exited" {
            println!("restart: {}", api.act(id, "restart")?.body);
        }
        Ok((now == "running").then_some(()))
    })?;
    let again = api.wait_for(id, "running")?;
    user(&again).wait_for_login(&again)?;
    Ok(again)
}

pub fn removed(api: &Api, snapshot: &Value) -> Result<()> {
    let path = format!("/api/snapshot/{}/", text(&snapshot["id"]));
    api.raw("DELETE", &path, None)?.expect(204).map(drop)
}

/// The disk holds what fits, and no more. Limits that lost count still refuse one file beyond the size, so there are two.
pub fn size_holds(lab: &impl Lab, instance: &Value) -> Result<()> {
    if !lab.facts().enforces_disk_size {
        return Ok(());
    }
    let fits = lab.facts().usable_disk_mib - 1500;
    inside(instance, &format!("fallocate -l {fits}M ~/fits && sync"))?;
    let beyond = inside(instance, "fallocate -l 3G ~/beyond");
    ensure!(beyond.is_err(), "3 GiB fit beside {fits} MiB on 10 GiB");
    inside(instance, "rm -f ~/fits ~/beyond && sync").map(drop)
}

/// A snapshot is taken while a program writes. The instance is restored from it, and another one made.
pub fn restore_and_clone(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, &format!("{FILL}; {WRITER}"))?;
    let (hashes, key) = (inside(&source, HASHES)?, host_key(&source)?);
    let snapshot = taken(&api, &source, "first")?;
    ensure!(
        snapshot["size_gib"] == 1 && snapshot["clonable"] == true,
        "{snapshot}"
    );
    let ticks = "wc -l < ~/ticks";
    let before: u64 = inside(&source, ticks)?.parse()?;
    until("the program goes on", || {
        let now: u64 = inside(&source, ticks)?.parse()?;
        Ok((now > before).then_some(()))
    })?;
    inside(&source, "sudo rm -r d /srv/beside && echo later > ~/later")?;
    let clone = cloned(&api, &snapshot)?;
    ensure!(
        inside(&clone, HASHES)? == hashes,
        "the clone has other files"
    );
    let old = user(&source).output(&clone, "true");
    ensure!(
        old.is_err(),
        "the password of the source is that of the clone"
    );
    ensure!(host_key(&clone)? != key, "both have one host key");
    ensure!(inside(&clone, "sudo ls /etc/wharf/first-boot || echo gone")?.ends_with("gone"));
    size_holds(lab, &clone)?;
    let source = restored(&api, &source, &snapshot)?;
    ensure!(inside(&source, HASHES)? == hashes, "other files came back");
    ensure!(
        inside(&source, "ls ~/later").is_err(),
        "a later file is there"
    );
    ensure!(host_key(&source)? == key, "another host key");
    size_holds(lab, &source)?;
    let clone = restarted(&api, &clone)?;
    ensure!(inside(&clone, HASHES)? == hashes, "after a restart");
    // The clone stays without its source and the snapshot.
    lab.remove(&api, &source)?;
    ensure!(inside(&clone, HASHES)? == hashes, "without its source");
    let gone = api.get(&format!("/api/snapshot/{}/", text(&snapshot["id"])))?;
    ensure!(gone.status == 404, "{}", gone.body);
    lab.remove(&api, &clone)?;
    server.finish()
}

/// An instance goes through cycles: it writes, and is restored and cloned.
pub fn cycles(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    let mut source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    let mut known = Vec::new();
    for cycle in 0..10 {
        inside(&source, &format!("{FILL}; echo {cycle} > d/cycle"))?;
        let hashes = inside(&source, HASHES)?;
        let snapshot = taken(&api, &source, &format!("cycle-{cycle}"))?;
        inside(&source, "echo lost > d/cycle; rm d/1")?;
        source = restored(&api, &source, &snapshot)?;
        ensure!(
            inside(&source, HASHES)? == hashes,
            "cycle {cycle}: restored"
        );
        size_holds(lab, &source)?;
        let clone = cloned(&api, &snapshot)?;
        ensure!(inside(&clone, HASHES)? == hashes, "cycle {cycle}: cloned");
        size_holds(lab, &clone)?;
        lab.remove(&api, &clone)?;
        known.push((hashes, snapshot));
    }
    // The first one can still be had.
    let (hashes, first) = &known[0];
    source = restored(&api, &source, first)?;
    ensure!(inside(&source, HASHES)? == *hashes, "{first}");
    for (_, snapshot) in &known {
        removed(&api, snapshot)?;
    }
    lab.remove(&api, &source)?;
    server.finish()
}

/// The number of the engine's images of a snapshot, also of those without a name.
pub fn copies(engine: &EngineContext, id: &str) -> Result<usize> {
    let label = format!("%7B%22label%22%3A%5B%22io.wharf.snapshot%3D{id}%22%5D%7D");
    let all = engine.ask("GET", &format!("/images/json?filters={label}"), None)?;
    Ok(all.as_array().map_or(0, Vec::len))
}

/// Earlier processes of Wharf have begun two other copies for a snapshot, of which the later takes the other's name.
fn copied_thrice(engine: &EngineContext, api: &Api, source: &Value) -> Result<()> {
    let snapshot = taken(api, source, "copied-thrice")?;
    let id = text(&snapshot["id"]);
    let image = format!("repo=localhost%2Fwharf-snapshot%2F{id}&tag=stopped");
    let label = format!("changes=LABEL%20io.wharf.snapshot%3D{id}");
    let copy = format!("/commit?container=wharf-{}&{image}&{label}", uuid(source));
    for n in 2..4 {
        engine.ask("POST", &copy, Some(json!({})))?;
        ensure!(copies(engine, id)? == n);
    }
    removed(api, &snapshot)?;
    until("all copies are gone", || {
        Ok((copies(engine, id)? == 0).then_some(()))
    })
}

/// Kills in a copy: Wharf, then the engine. The instance goes on, and nothing incomplete is ready.
pub fn kills(engine: &mut EngineContext) -> Result<()> {
    let (mut server, mut api) = engine.served("")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, "head -c 400000000 /dev/urandom > data; sync")?;
    let sum = inside(&source, "sha256sum data")?;
    let stands_still = |engine: &EngineContext| {
        if !engine.tells_of_copies() {
            wharf_tests::interval(Duration::from_millis(1500));
            return Ok(());
        }
        caught("the copy is under way", || {
            let state = &engine.container_of(&source)?["State"];
            Ok((*state == "paused").then_some(()))
        })
    };
    let first = begun(&api, &source, "wharf-is-killed")?;
    stands_still(engine)?;
    server.kill()?;
    server.run()?;
    api = server.again(&api);
    let first = ready(&api, &first)?;
    let second = begun(&api, &source, "the-engine-is-killed")?;
    stands_still(engine)?;
    engine.crash(|| {
        ensure!(one(&api, &second)?["state"] == "creating");
        Ok(())
    })?;
    until("the instance goes on", || Ok(inside(&source, "true").ok()))?;
    let second = ready(&api, &second)?;
    for snapshot in [first, second] {
        let clone = cloned(&api, &snapshot)?;
        ensure!(inside(&clone, "sha256sum data")? == sum, "{snapshot}");
        engine.remove(&api, &clone)?;
    }
    if engine.tells_of_copies() {
        let third = begun(&api, &source, "both-are-killed")?;
        stands_still(engine)?;
        server.kill()?;
        engine.crash(|| Ok(()))?;
        // The engine has forgotten the pause, and more events than it remembers hide that.
        for n in 0..150 {
            let name = format!("event-{n}");
            engine.ask("POST", "/volumes/create", Some(json!({ "Name": name })))?;
            engine.ask("DELETE", &format!("/volumes/{name}"), None)?;
        }
        server.run()?;
        api = server.again(&api);
        removed(&api, &third)?;
        until("the instance goes on", || Ok(inside(&source, "true").ok()))?;
        copied_thrice(engine, &api, &source)?;
    }
    engine.remove(&api, &source)?;
    server.finish()
}

/// The points at which the engine is killed, as fractions of the undisturbed duration. A plain run has the second one.
pub const POINTS: [f64; 5] = [0.05, 0.15, 0.3, 0.5, 0.8];

/// The engine is killed while it makes clones. They get all files, and one container each.
pub fn killed_in_a_clone(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served("")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, FILL)?;
    let hashes = inside(&source, HASHES)?;
    let snapshot = taken(&api, &source, "of-clones")?;
    let begin = Instant::now();
    let clone = cloned(&api, &snapshot)?;
    let undisturbed = begin.elapsed();
    engine.remove(&api, &clone)?;
    let points = if is_whole_run() {
        &POINTS[..]
    } else {
        &POINTS[1..2]
    };
    for point in points {
        let clone = requested(&api, &snapshot)?;
        wharf_tests::interval(undisturbed.mul_f64(*point));
        engine.crash(|| Ok(()))?;
        let clone = api.wait_for(uuid(&clone), "running")?;
        user(&clone).wait_for_login(&clone)?;
        ensure!(inside(&clone, HASHES)? == hashes, "killed at {point}");
        engine.container_of(&clone)?;
        size_holds(engine, &clone)?;
        engine.remove(&api, &clone)?;
    }
    println!("undisturbed: {undisturbed:.1?}; killed at {points:?} of that");
    ensure!(inside(&source, HASHES)? == hashes, "the source has changed");
    removed(&api, &snapshot)?;
    engine.remove(&api, &source)?;
    server.finish()
}

/// The longest time for a copy of ten GiB.
const COPY_OF_A_DISK: Duration = Duration::from_mins(10);

/// An instance is restored from the snapshot of its full disk, and can free room then.
pub fn full_disk(engine: &mut EngineContext) -> Result<()> {
    if !engine.enforces_disk_size() {
        println!("SKIPPED: the engine limits no disks");
        return Ok(());
    }
    let (server, api) = engine.served("")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    let fill = "head -c 50000000 /dev/urandom > own; sync; for m in 4000 2000 2000 1000 500 200 100 50 20 10 5 2 1; do \
        n=$((n + 1)); fallocate -l ${m}M f$n 2>/dev/null || rm -f f$n; done; dd if=/dev/zero of=f0 bs=4096 2>/dev/null; sync";
    let list = "{ sha256sum own; stat -c '%n %s' f*; } | sha256sum";
    inside(&source, fill).ok();
    let more = inside(&source, "head -c 100000000 /dev/zero > more");
    ensure!(more.is_err(), "the disk is not full");
    inside(&source, "rm -f more")?;
    let filled = inside(&source, list)?;
    let snapshot = begun(&api, &source, "full")?;
    let snapshot = eventually("the full disk is copied", COPY_OF_A_DISK, || {
        let now = one(&api, &snapshot)?;
        ensure!(now["state"] != "error", "{now}");
        Ok((now["state"] == "ready").then_some(now))
    })?;
    inside(&source, "rm own f1 f2")?;
    let source = restored(&api, &source, &snapshot)?;
    ensure!(inside(&source, list)? == filled, "other files came back");
    let beyond = inside(&source, "fallocate -l 12G beyond");
    ensure!(beyond.is_err(), "12 GiB fit on a disk of 10");
    inside(&source, "rm -f beyond f* && sync")?;
    until("there is room again", || {
        Ok(inside(&source, "fallocate -l 8G fits && rm fits").ok())
    })?;
    engine.remove(&api, &source)?;
    server.finish()
}

/// The engine's storage has no room for a copy of the data, though no disk is full. A clone that shares data may need no room.
pub fn full_pool(engine: &mut EngineContext) -> Result<()> {
    if !engine.enforces_disk_size() {
        println!("SKIPPED: the engine has no storage of its own");
        return Ok(());
    }
    let (server, api) = engine.served(without_room::SETTINGS)?;
    let makes_volumes = are_made(&api)?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, "head -c 600000000 /dev/urandom > data; sync")?;
    let sum = inside(&source, "sha256sum data")?;
    let before = taken(&api, &source, "before")?;
    inside(&source, "echo later > later; sync")?;
    let filler = engine.store().with_file_name("filler");
    let fill = "mkdir $1 && cd $1 && for m in 8192 4096 2048 1024 512 256; do \
        while fallocate -l ${m}M f$((n = n + 1)) 2>/dev/null; do :; done; done; sync";
    let mut filled = Command::new("sh");
    let filled = filled.args(["-ec", fill, "sh"]).arg(&filler).status()?;
    ensure!(filled.success(), "{fill}: {filled}");
    let tried = || -> Result<Value> {
        let full = begun(&api, &source, "without-room")?;
        let failed = until("the snapshot has failed", || {
            let now = one(&api, &full)?;
            ensure!(now["state"] != "ready", "{now}");
            Ok((now["state"] == "error").then_some(now))
        })?;
        println!("without room: {}", failed["reason"]);
        ensure!(text(&failed["reason"]).contains("could not take"));
        ensure!(inside(&source, "sha256sum data")? == sum);
        removed(&api, &full)?;
        if makes_volumes {
            without_room::volume(&api)?;
        }
        let clone = without_room::clone(&api, &before)?;
        api.act(uuid(&source), "stop")?.expect(200)?;
        api.wait_for(uuid(&source), "exited")?;
        restoring(&api, &before)?;
        // The engine may refuse it again and again.
        after_observations(&server, 1)?;
        Ok(clone)
    };
    let tried = tried();
    std::fs::remove_dir_all(&filler)?;
    let clone = tried?;
    let source = without_room::restored(&api, &source, &before, &sum)?;
    without_room::removed(engine, &api, &clone, &sum)?;
    let snapshot = taken(&api, &source, "with-room")?;
    let clone = cloned(&api, &snapshot)?;
    ensure!(inside(&clone, "sha256sum data")? == sum, "{snapshot}");
    engine.remove(&api, &clone)?;
    engine.remove(&api, &source)?;
    // The next test copies a whole disk. The storage frees removed files later.
    until("the storage has its room again", || {
        let free = engine.free_mib()?;
        Ok((free > 25 << 10).then_some(()))
    })?;
    server.finish()
}
