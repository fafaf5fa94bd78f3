//! Requests to an engine whose storage is full: their ends, and their success once there is room.

use crate::lab::{Lab, inside, user, uuid};
use crate::snapshots::{requested, restoring, started};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wharf_tests::{Api, until};

/// Settings with which a clone or a snapshot without room is soon in error.
pub const SETTINGS: &str = "provisioning_deadline_s = 120\n";

/// Makes a volume, and removes it. Its size is a claim, for which the storage needs no room yet.
pub fn volume(api: &Api) -> Result<()> {
    let volume = json!({ "name": "none", "size_gib": 1 });
    api.send("POST", "/api/volume/", &volume)?.expect(201)?;
    let state = until("the volume has an end", || {
        let now = api.get("/api/volume/none/")?.expect(200)?;
        Ok((now["state"] != "creating").then_some(now))
    })?;
    println!("a volume without room: {state}");
    let removed = api.raw("DELETE", "/api/volume/none/", None)?;
    removed.expect(204).map(drop)
}

/// Requests a clone, which runs or is in error.
pub fn clone(api: &Api, snapshot: &Value) -> Result<Value> {
    let clone = requested(api, snapshot)?;
    let clone = until("the clone has an end", || {
        let now = api.instance(uuid(&clone))?.expect(200)?;
        Ok((now["state"] != "provisioning").then_some(now))
    })?;
    println!("a clone without room: {}", clone["state"]);
    Ok(clone)
}

/// Checks, once there is room, that such a clone has all data if it runs, and removes it.
pub fn removed(lab: &impl Lab, api: &Api, clone: &Value, sum: &str) -> Result<()> {
    if clone["state"] == "running" {
        user(clone).wait_for_login(clone)?;
        ensure!(inside(clone, "sha256sum data")? == sum, "the clone differs");
    }
    lab.remove(api, clone)
}

/// Waits, once there is room, for the end of a restore that was requested without it, and starts the instance. The
/// restore may have failed meanwhile, and is requested again then.
pub fn restored(api: &Api, instance: &Value, snapshot: &Value, sum: &str) -> Result<Value> {
    let path = format!("/api/event/?after=0&instance={}", uuid(instance));
    let mut requests = 1;
    until("the instance is restored", || {
        let events = api.get(&path)?.expect(200)?.to_string();
        if events.contains("\"restored\"") {
            return Ok(Some(()));
        }
        if events.matches("\"restore-failed\"").count() == requests {
            println!("a restore without room has failed");
            restoring(api, snapshot)?;
            requests += 1;
        }
        Ok(None)
    })?;
    let instance = started(api, instance)?;
    let found = inside(&instance, "! test -e later && sha256sum data")?;
    ensure!(found == sum, "other files came back");
    Ok(instance)
}
