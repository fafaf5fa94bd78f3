//! Volumes: sizes that hold, one writer or several readers, and content that outlives instances.

use crate::backups::{SETTINGS, bucket};
use crate::context::{EngineContext, NODE};
use crate::lab::{Lab, inside, restarted, running, state, text, user, uuid};
use crate::volume_backups::{are_made_of, begun, ended};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use wharf_testkit::object_store::ObjectStore;
use wharf_tests::lanes::is_whole_run;
use wharf_tests::{Api, caught, small, until};

/// Fills a volume of one GiB until the engine refuses more, and prints the number of MiB that it took.
pub const FILL: &str = "dd if=/dev/urandom of=/data/full bs=1M count=1400 2>/tmp/why; \
    grep -Eqi 'quota exceeded|no space' /tmp/why && echo $(($(stat -c %s /data/full) >> 20))";

/// Whether the node makes volumes. Before its first look at the node, the server takes a request for one.
pub fn are_made(api: &Api) -> Result<bool> {
    let probe = json!({ "name": "probe", "size_gib": 1 });
    if api.send("POST", "/api/volume/", &probe)?.status != 201 {
        return Ok(false);
    }
    let state = until("a probe is made", || {
        let state = text(&volume(api, "probe")?["state"]).to_owned();
        Ok((state != "creating").then_some(state))
    })?;
    api.raw("DELETE", "/api/volume/probe/", None)?.expect(204)?;
    Ok(state == "ready")
}

pub fn volume(api: &Api, name: &str) -> Result<Value> {
    api.get(&format!("/api/volume/{name}/"))?.expect(200)
}

pub fn made(api: &Api, name: &str) -> Result<Value> {
    requested(api, name)?;
    ready(api, name)
}

fn requested(api: &Api, name: &str) -> Result<()> {
    let body = json!({ "name": name, "size_gib": 1 });
    let created = api.send("POST", "/api/volume/", &body)?;
    created.expect(201).map(drop)
}

pub fn ready(api: &Api, name: &str) -> Result<Value> {
    until(&format!("{name} is ready"), || {
        let volume = volume(api, name)?;
        ensure!(volume["state"] != "error", "{volume}");
        Ok((volume["state"] == "ready").then_some(volume))
    })
}

/// The number of containers that hold volumes on an engine.
fn holders(engine: &EngineContext) -> Result<usize> {
    let labelled = "filters=%7B%22label%22%3A%5B%22io.wharf.holder%22%5D%7D";
    let path = format!("/containers/json?all=true&{labelled}");
    let holders = engine.ask("GET", &path, None)?;
    Ok(holders.as_array().context("no list of holders")?.len())
}

/// Waits until an engine has nothing of volumes.
pub fn none_is_left(engine: &EngineContext) -> Result<()> {
    until("the engine has nothing of volumes", || {
        let volumes = engine.ask("GET", "/volumes", None)?.to_string();
        let none = holders(engine)? == 0 && !volumes.contains("wharf-volume-");
        Ok(none.then_some(()))
    })
}

/// Creates a container with volumes at `/data` or `/refs`, and waits until it runs.
pub fn with(api: &Api, mounts: &Value) -> Result<Value> {
    let mut body = small("container");
    body["volumes"] = mounts.clone();
    // A volume is free once the node was seen without the last instance that had it.
    let created = until("the volumes are free", || {
        let answer = api.create(&body)?;
        Ok((answer.status != 400).then_some(answer))
    })?
    .expect(201)?;
    let running = api.wait_for(uuid(&created), "running")?;
    user(&running).wait_for_login(&running)?;
    Ok(running)
}

pub fn removed(api: &Api, name: &str) -> Result<()> {
    until(&format!("{name} can be deleted"), || {
        let answer = api.raw("DELETE", &format!("/api/volume/{name}/"), None)?;
        Ok((answer.status == 204).then_some(()))
    })
}

/// A size holds, content outlives instances, and a volume in use stays.
pub fn sizes_and_content(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    if !are_made(&api)? {
        println!("SKIPPED: this node makes no volumes");
        return server.finish();
    }
    made(&api, "data")?;
    let written = json!([{ "volume": "data", "path": "/data" }]);
    let one = with(&api, &written)?;
    ensure!(inside(&one, "stat -c '%U %a' /data")? == "user 755");
    let took: u32 = inside(&one, FILL)?.parse().context("it takes 1400 MiB")?;
    ensure!((900..=1100).contains(&took), "it took {took} MiB");
    ensure!(
        inside(&one, "echo more > /data/more").is_err(),
        "it takes more"
    );
    // The instance's own disk is not charged, and a removal makes room.
    inside(&one, "fallocate -l 3G ~/own && rm ~/own")?;
    inside(&one, "rm /data/full && echo kept > /data/kept && sync")?;
    let refused = api.raw("DELETE", "/api/volume/data/", None)?;
    ensure!(refused.status == 400, "{}", refused.body);
    api.patch(uuid(&one), &json!({ "name": "another-name" }))?
        .expect(200)?;
    let one = restarted(&api, &one)?;
    ensure!(inside(&one, "cat /data/kept")? == "kept");
    api.act(uuid(&one), "stop")?.expect(200)?;
    let refused = api.raw("DELETE", "/api/volume/data/", None)?;
    ensure!(refused.status == 400, "stopped: {}", refused.body);
    let renamed = json!({ "name": "renamed" });
    api.send("PATCH", "/api/volume/data/", &renamed)?
        .expect(200)?;
    lab.remove(&api, &one)?;
    let read = json!([{ "volume": "renamed", "path": "/data", "read_only": true }]);
    let (first, second) = (with(&api, &read)?, with(&api, &read)?);
    for reader in [&first, &second] {
        ensure!(inside(reader, "cat /data/kept")? == "kept");
        let write = inside(reader, "sudo touch /data/x");
        ensure!(write.is_err(), "a reader writes");
        let remounted = inside(
            reader,
            "sudo mount -o remount,rw /data && sudo touch /data/x",
        );
        ensure!(remounted.is_err(), "a reader remounts it");
    }
    let mut writer = small("container");
    writer["volumes"] = json!([{ "volume": "renamed", "path": "/data" }]);
    let refused = api.create(&writer)?;
    ensure!(
        refused.status == 400,
        "a writer beside readers: {}",
        refused.body
    );
    for reader in [&first, &second] {
        lab.remove(&api, reader)?;
    }
    removed(&api, "renamed")?;
    server.finish()
}

/// A larger disk keeps the volumes, on engines whose containers get another one for it.
pub fn stay_while_a_disk_grows(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    if !are_made(&api)? {
        println!("SKIPPED: this node makes no volumes");
        return server.finish();
    }
    made(&api, "data")?;
    made(&api, "refs")?;
    let mounts = json!([
        { "volume": "data", "path": "/srv/data" },
        { "volume": "refs", "path": "/refs", "read_only": true },
    ]);
    let one = with(&api, &mounts)?;
    let fill = "mkdir /srv/data/d && echo kept > /srv/data/d/kept && chmod 700 /srv/data/d && echo own > ~/own \
        && sudo sh -c 'echo beside > /srv/beside'";
    inside(&one, fill)?;
    api.act(uuid(&one), "stop")?.expect(200)?;
    let larger = json!({ "disk_size_gib": 11 });
    api.send("PATCH", &format!("/api/instance/{}/", uuid(&one)), &larger)?
        .expect(200)?;
    api.act(uuid(&one), "restart")?.expect(200)?;
    until("the larger disk is there", || {
        let look = "stat -c '%U %a' /srv/data /srv/data/d; cat /srv/data/d/kept ~/own /srv/beside; ls -A /refs";
        let seen = inside(&one, look).ok();
        Ok(seen.filter(|seen| seen == "user 755\nuser 700\nkept\nown\nbeside"))
    })?;
    inside(&one, "fallocate -l 10500M ~/more && rm ~/more")?;
    lab.remove(&api, &one)?;
    removed(&api, "data")?;
    removed(&api, "refs")?;
    server.finish()
}

/// An instance is created again that was given up with its node and its volume, though the machine comes back.
pub fn lost_and_created_again(engine: &mut EngineContext) -> Result<()> {
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
    made(&api, "sent")?;
    let mounts = json!([
        { "volume": "data", "path": "/data" },
        { "volume": "sent", "path": "/sent" },
    ]);
    let one = with(&api, &mounts)?;
    inside(&one, "echo then | tee /data/then /sent/then > ~/then; sync")?;
    // A volume with a backup comes back as it was then.
    let is_sent = are_made_of(&api, "sent")?;
    if is_sent {
        api.act(uuid(&one), "stop")?.expect(200)?;
        api.wait_for(uuid(&one), "exited")?;
        let backup = begun(&api, "sent")?;
        let done = ended(&api, &backup)?;
        ensure!(done["state"] == "done", "{done}");
        api.act(uuid(&one), "restart")?.expect(200)?;
        let one = api.wait_for(uuid(&one), "running")?;
        user(&one).wait_for_login(&one)?;
        inside(&one, "echo later > /sent/later; sync")?;
    }
    let listed = |words: &str| {
        until(&format!("the node is listed with: {words}"), || {
            let list = server.cli(&["node", "list"])?;
            Ok(list.contains(words).then_some(()))
        })
    };
    engine.restart(|| {
        listed("out of reach")?;
        server.cli(&["node", "lost", NODE, "--yes"])?;
        ensure!(volume(&api, "data")?["state"] == "error");
        ensure!(state(&api, &one)? == "error");
        Ok(())
    })?;
    listed("reachable")?;
    until("what was given up is gone", || {
        Ok(engine.objects(&one)?.is_empty().then_some(()))
    })?;
    // dockerd counts a mount of a container that it removed right after its start, until the next one.
    engine.restart(|| Ok(()))?;
    listed("reachable")?;
    server.cli(&["node", "resume", NODE])?;
    let again = api.act(uuid(&one), "recreate")?.expect(200)?;
    let back = again["volumes"].as_array().map_or(0, Vec::len);
    ensure!(back == usize::from(is_sent), "{again}");
    let again = api.wait_for(uuid(&one), "running")?;
    user(&again).wait_for_login(&again)?;
    inside(&again, "! test -e /data/then && ! test -e ~/then")?;
    if is_sent {
        ensure!(inside(&again, "cat /sent/*")? == "then");
    }
    ensure!(volume(&api, "data")?["state"] == "error");
    removed(&api, "data")?;
    made(&api, "data")?;
    let other = with(&api, &json!([{ "volume": "data", "path": "/data" }]))?;
    ensure!(inside(&other, "ls -A /data")?.is_empty(), "an old volume");
    engine.remove(&api, &other)?;
    engine.remove(&api, &again)?;
    removed(&api, "data")?;
    removed(&api, "sent")?;
    none_is_left(engine)?;
    server.finish()
}

/// The points at which the engine is killed, as fractions of the undisturbed duration. A plain run has the middle one.
const POINTS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// The engine is killed while it makes and removes volumes. Their sizes hold, and nothing else is left.
pub fn killed_in_a_make(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served("")?;
    if !are_made(&api)? {
        println!("SKIPPED: this node makes no volumes");
        return server.finish();
    }
    let begin = Instant::now();
    made(&api, "undisturbed")?;
    let undisturbed = begin.elapsed();
    let points = if is_whole_run() {
        &POINTS[..]
    } else {
        &POINTS[2..3]
    };
    let (mut names, mut mounts) = (vec!["undisturbed".to_owned()], Vec::new());
    for point in points {
        let name = format!("killed-{}", names.len());
        requested(&api, &name)?;
        wharf_tests::interval(undisturbed.mul_f64(*point));
        engine.crash(|| Ok(()))?;
        ready(&api, &name)?;
        mounts.push(json!({ "volume": name, "path": format!("/mnt/{name}") }));
        names.push(name);
    }
    let one = with(&api, &json!(mounts))?;
    for mount in &mounts {
        let path = text(&mount["path"]);
        let took = inside(&one, &FILL.replace("/data", path))?;
        let took: u32 = took.parse().context("it takes 1400 MiB")?;
        ensure!((900..=1100).contains(&took), "{path} took {took} MiB");
    }
    println!("undisturbed: {undisturbed:.1?}; killed at {points:?} of that");
    engine.remove(&api, &one)?;
    removed(&api, "undisturbed")?;
    let begin = Instant::now();
    let mut left = points.len();
    caught("the volume is gone", || {
        Ok((holders(engine)? == left).then_some(()))
    })?;
    let undisturbed = begin.elapsed();
    for (point, name) in points.iter().zip(&names[1..]) {
        removed(&api, name)?;
        wharf_tests::interval(undisturbed.mul_f64(*point));
        engine.crash(|| Ok(()))?;
        left -= 1;
        until("the engine has no holder of the volume", || {
            Ok((holders(engine)? == left).then_some(()))
        })?;
    }
    println!("a removal: {undisturbed:.1?}; killed at {points:?} of that");
    none_is_left(engine)?;
    server.finish()
}

/// A running instance gets and loses a volume, on engines that can do that.
pub fn come_and_go(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served("")?;
    made(&api, "late")?;
    let one = running(&api)?;
    user(&one).wait_for_login(&one)?;
    let path = |verb: &str| format!("/api/instance/{}/{verb}-volume/", uuid(&one));
    for round in 0..2 {
        let mount = json!({ "volume": "late", "path": "/data" });
        api.send("POST", &path("attach"), &mount)?.expect(200)?;
        until("it is attached", || {
            Ok(inside(&one, &format!("echo {round} >> /data/rounds")).ok())
        })?;
        let taken = json!({ "volume": "late" });
        api.send("POST", &path("detach"), &taken)?.expect(200)?;
        until("it is detached", || {
            Ok(inside(&one, "mountpoint /data").is_err().then_some(()))
        })?;
    }
    lab.remove(&api, &one)?;
    let again = with(&api, &json!([{ "volume": "late", "path": "/data" }]))?;
    ensure!(inside(&again, "cat /data/rounds")? == "0\n1");
    lab.remove(&api, &again)?;
    removed(&api, "late")?;
    server.finish()
}
