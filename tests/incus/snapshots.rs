//! Snapshots on Incus: full disks, volumes that are gone since, and a daemon that is killed in a restore.

use super::context::IncusContext;
use crate::lab::{Lab, inside, running, text, user, uuid};
use crate::snapshots::{cloned, restored, started, taken};
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Duration;
use wharf_tests::{caught, until};

/// The engine writes a file of its own onto a disk, which is full.
pub fn full_disk(context: &IncusContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    let fill = "for m in 4000 2000 2000 1000 500 200 100 50 20 10 5 2 1; do n=$((n + 1)); \
        fallocate -l ${m}M f$n 2>/dev/null || rm -f f$n; done; dd if=/dev/zero of=f0 bs=4096 2>/dev/null; sync";
    let list = "stat -c '%n %s' f* | sha256sum";
    inside(&source, fill).ok();
    let filled = inside(&source, list)?;
    let snapshot = taken(&api, &source, "full")?;
    inside(&source, "rm f1 f2")?;
    let id = uuid(&source);
    api.act(id, "stop")?.expect(200)?;
    api.wait_for(id, "exited")?;
    let path = format!("/api/snapshot/{}/restore/", text(&snapshot["id"]));
    api.send("POST", &path, &json!({}))?.expect(200)?;
    // An instance with a full disk does not start.
    until("the disk can be larger", || {
        let larger = json!({ "disk_size_gib": 11 });
        let answer = api.send("PATCH", &format!("/api/instance/{id}/"), &larger)?;
        Ok((answer.status == 200).then_some(()))
    })?;
    api.act(id, "restart")?.expect(200)?;
    let source = api.wait_for(id, "running")?;
    user(&source).wait_for_login(&source)?;
    ensure!(inside(&source, list)? == filled, "other files came back");
    let more = inside(&source, "fallocate -l 12G beyond");
    ensure!(more.is_err(), "more than the disk fits on it");
    inside(&source, "rm f* && fallocate -l 8G fits && rm fits")?;
    context.remove(&api, &source)?;
    server.finish()
}

/// A snapshot has the devices of its time. Neither a restore nor a clone brings a volume back.
pub fn volumes_of_then(context: &IncusContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let volume = |name: &str| -> Result<()> {
        let body = json!({ "name": name, "size_gib": 1 });
        api.send("POST", "/api/volume/", &body)?.expect(201)?;
        let path = format!("/api/volume/{name}/");
        until(&format!("{name} is ready"), || {
            let volume = api.get(&path)?.expect(200)?;
            Ok((volume["state"] == "ready").then_some(()))
        })
    };
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    let act = |verb: &str, name: &str| {
        let path = format!("/api/instance/{}/{verb}-volume/", uuid(&source));
        let mut body = json!({ "volume": name });
        if verb == "attach" {
            body["path"] = format!("/mnt/{name}").into();
        }
        api.send("POST", &path, &body)?.expect(200).map(drop)
    };
    for name in ["gone", "kept"] {
        volume(name)?;
        act("attach", name)?;
    }
    until("both are attached", || {
        Ok(inside(&source, "touch /mnt/gone/a /mnt/kept/a").ok())
    })?;
    let snapshot = taken(&api, &source, "with-volumes")?;
    act("detach", "gone")?;
    until("the volume can be deleted", || {
        let answer = api.raw("DELETE", "/api/volume/gone/", None)?;
        Ok((answer.status == 204).then_some(()))
    })?;
    let clone = cloned(&api, &snapshot)?;
    let none = "for at in gone kept; do ! mountpoint -q /mnt/$at || exit 1; done";
    inside(&clone, none)?;
    let devices = context.on(&clone, "GET", "", None)?["devices"].clone();
    let attached = devices.as_object().into_iter().flatten();
    let mut attached = attached
        .filter(|(name, device)| name.starts_with("vol-") && text(&device["type"]) != "none");
    ensure!(attached.next().is_none(), "{devices}");
    let source = restored(&api, &source, &snapshot)?;
    inside(&source, "ls /mnt/kept/a && ! mountpoint -q /mnt/gone")?;
    context.remove(&api, &clone)?;
    context.remove(&api, &source)?;
    server.finish()
}

/// The engine leaves the earlier disk of a restore in which it is killed.
pub fn killed_in_a_restore(context: &IncusContext) -> Result<()> {
    let server = context.server(&[0])?;
    let api = server.user("ann@example.com")?;
    for pause_ms in [20, 60, 120] {
        let source = running(&api)?;
        user(&source).wait_for_login(&source)?;
        inside(&source, "echo then > state; sync")?;
        let snapshot = taken(&api, &source, &format!("killed-{pause_ms}"))?;
        inside(&source, "echo later > state; sync")?;
        let id = uuid(&source);
        api.act(id, "stop")?.expect(200)?;
        api.wait_for(id, "exited")?;
        let path = format!("/api/snapshot/{}/restore/", text(&snapshot["id"]));
        api.send("POST", &path, &json!({}))?.expect(200)?;
        caught("the engine has begun", || {
            let config = context.on(&source, "GET", "", None)?["config"].clone();
            let begun = text(&config["user.wharf.restore"]) == text(&snapshot["id"]);
            // On a busy machine it may end before a look.
            let events = api.get(&format!("/api/event/?after=0&instance={id}"))?;
            let ended = events.expect(200)?.to_string().contains("\"restored\"");
            Ok((begun || ended).then_some(()))
        })?;
        std::thread::sleep(Duration::from_millis(pause_ms));
        context.cluster().member(0)?.kill()?;
        context.cluster().member(0)?.resume()?;
        let again = started(&api, &source)?;
        let kept = inside(&again, "cat state")?;
        ensure!(kept == "then", "killed after {pause_ms} ms: {kept}");
        context.remove(&api, &again)?;
    }
    server.finish()
}
