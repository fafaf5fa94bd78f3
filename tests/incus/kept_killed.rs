//! A member's daemon is killed in each step of a volume and of a snapshot.

use super::context::IncusContext;
use crate::lab::{Lab as _, inside, running, text, user, uuid};
use crate::snapshots::{ready, requested};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Api, interval, until};

/// The member whose daemon is killed.
const MEMBER: usize = 0;
/// The pauses between a request and the kill.
const PAUSES_MS: [u64; 3] = [10, 40, 100];
const VOLUME: &str = "/api/volume/killed/";

pub fn in_each_step(context: &IncusContext) -> Result<()> {
    let server = context.server(&[MEMBER])?;
    let api = server.user("ann@example.com")?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, "echo then > state; sync")?;
    let path = |part: &str| format!("/api/instance/{}/{part}/", uuid(&source));
    for pause_ms in PAUSES_MS {
        let kill = || -> Result<()> {
            interval(Duration::from_millis(pause_ms));
            let mut cluster = context.cluster();
            let member = cluster.member(MEMBER)?;
            member.kill()?;
            member.resume()
        };
        let volume = json!({ "name": "killed", "size_gib": 1 });
        api.send("POST", "/api/volume/", &volume)?.expect(201)?;
        kill()?;
        is_made(&api)?;

        let mount = json!({ "volume": "killed", "path": "/data" });
        accepted(&api, &path("attach-volume"), &mount)?;
        kill()?;
        until("it is attached", || {
            Ok(inside(&source, "echo more >> /data/rounds").ok())
        })?;
        let detached = json!({ "volume": "killed" });
        accepted(&api, &path("detach-volume"), &detached)?;
        kill()?;
        until("it is detached", || {
            Ok(inside(&source, "mountpoint /data").is_err().then_some(()))
        })?;

        let named = json!({ "name": format!("killed-{pause_ms}") });
        let taken = accepted(&api, &path("snapshot"), &named)?;
        kill()?;
        let taken = ready(&api, &taken)?;
        let id = text(&taken["id"]).to_owned();
        let clone = requested(&api, &taken)?;
        kill()?;
        let clone = api.wait_for(uuid(&clone), "running")?;
        user(&clone).wait_for_login(&clone)?;
        ensure!(inside(&clone, "cat /home/user/state")? == "then");
        context.remove(&api, &clone)?;
        until("the snapshot can be deleted", || {
            let deleted = api.raw("DELETE", &format!("/api/snapshot/{id}/"), None)?;
            Ok((deleted.status == 204).then_some(()))
        })?;
        kill()?;
        until("the engine has no snapshot", || {
            let listed = context.on(&source, "GET", "/snapshots", None)?;
            Ok((!listed.to_string().contains(&id)).then_some(()))
        })?;

        until("the volume can be deleted", || {
            let deleted = api.raw("DELETE", VOLUME, None)?;
            Ok((deleted.status == 204).then_some(()))
        })?;
        kill()?;
        until("the engine has no volume", || {
            Ok(volumes(context)?.is_empty().then_some(()))
        })?;
    }
    ensure!(inside(&source, "cat state")? == "then");
    context.remove(&api, &source)?;
    server.finish()
}

/// Sends a request until no earlier change is under way, whose effect is seen before its end.
fn accepted(api: &Api, path: &str, body: &Value) -> Result<Value> {
    until("no earlier change is under way", || {
        let answer = api.send("POST", path, body)?;
        if answer.body.to_string().contains("still under way") {
            return Ok(None);
        }
        let status = answer.status;
        ensure!([200, 201].contains(&status), "{status}: {}", answer.body);
        answer.expect(status).map(Some)
    })
}

/// Waits until the volume is ready. One whose creation was interrupted may be in error, and is made again then.
fn is_made(api: &Api) -> Result<()> {
    let settled = || {
        until("the volume is settled", || {
            let now = api.get(VOLUME)?.expect(200)?;
            Ok((now["state"] != "creating").then_some(now))
        })
    };
    if settled()?["state"] == "error" {
        println!("a creation that was cut is in error");
        api.raw("DELETE", VOLUME, None)?.expect(204)?;
        until("the name is free", || {
            let again = json!({ "name": "killed", "size_gib": 1 });
            let again = api.send("POST", "/api/volume/", &again)?;
            Ok((again.status == 201).then_some(()))
        })?;
    }
    let made = settled()?;
    ensure!(made["state"] == "ready", "{made}");
    Ok(())
}

/// The volumes of servers on the member.
fn volumes(context: &IncusContext) -> Result<Vec<String>> {
    let member = &context.member(MEMBER).name;
    let path = format!("/1.0/storage-pools/default/volumes/custom?project=wharf&target={member}");
    let listed = context.ask("GET", &path, None)?;
    let listed = listed.as_array().context("no list of volumes")?;
    let paths = listed.iter().filter_map(Value::as_str);
    let paths = paths.filter(|path| path.contains("/wv-"));
    Ok(paths.map(str::to_owned).collect())
}
