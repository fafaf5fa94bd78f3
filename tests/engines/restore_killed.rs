//! The engine killed in restores, and in removals of snapshots.

use crate::context::EngineContext;
use crate::lab::{Lab as _, inside, running, text, user, uuid};
use crate::snapshots::{
    FILL, HASHES, POINTS, copies, removed, restoring, size_holds, started, taken,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Instant;
use wharf_tests::lanes::is_whole_run;
use wharf_tests::{Api, caught, interval, until};

/// Changes that a restore undoes.
const LATER: &str = "rm -f d/1 && echo later > later && sync";

/// The instance has the files of its snapshot, its size, and one container.
fn is_of_then(engine: &EngineContext, instance: &Value, hashes: &str) -> Result<()> {
    ensure!(inside(instance, HASHES)? == hashes, "other files came back");
    inside(instance, "! test -e later")?;
    engine.container_of(instance)?;
    size_holds(engine, instance)
}

/// Requests a restore from a snapshot, once the instance has other files and is stopped.
fn begun(api: &Api, instance: &Value, snapshot: &Value) -> Result<Instant> {
    let id = uuid(instance);
    // The engine opens the ports again after a kill.
    until("the instance goes on", || Ok(inside(instance, LATER).ok()))?;
    api.act(id, "stop")?.expect(200)?;
    api.wait_for(id, "exited")?;
    let begin = Instant::now();
    restoring(api, snapshot)?;
    Ok(begin)
}

/// A restored instance has all files, and nothing is left of a removed snapshot.
pub fn converges(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served("")?;
    let mut source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    inside(&source, FILL)?;
    let hashes = inside(&source, HASHES)?;
    let snapshot = taken(&api, &source, "of-restores")?;

    let other = taken(&api, &source, "undisturbed")?;
    let begin = Instant::now();
    removed(&api, &other)?;
    caught("the snapshot is gone", || {
        Ok((copies(engine, text(&other["id"]))? == 0).then_some(()))
    })?;
    let removal = begin.elapsed();
    let begin = begun(&api, &source, &snapshot)?;
    let events = format!("/api/event/?after=0&instance={}", uuid(&source));
    caught("the instance is restored", || {
        let events = api.get(&events)?.expect(200)?.to_string();
        Ok(events.contains("\"restored\"").then_some(()))
    })?;
    let restore = begin.elapsed();
    source = started(&api, &source)?;
    is_of_then(engine, &source, &hashes)?;

    let points = if is_whole_run() {
        &POINTS[..]
    } else {
        &POINTS[1..2]
    };
    for (nth, point) in points.iter().enumerate() {
        let other = taken(&api, &source, &format!("removed-{nth}"))?;
        removed(&api, &other)?;
        interval(removal.mul_f64(*point));
        engine.crash(|| Ok(()))?;
        until("nothing is left of the snapshot", || {
            Ok((copies(engine, text(&other["id"]))? == 0).then_some(()))
        })?;
        begun(&api, &source, &snapshot)?;
        interval(restore.mul_f64(*point));
        engine.crash(|| Ok(()))?;
        source = started(&api, &source)?;
        is_of_then(engine, &source, &hashes).with_context(|| format!("killed at {point}"))?;
    }
    println!("a removal: {removal:.1?}; a restore: {restore:.1?}; killed at {points:?} of these");
    engine.remove(&api, &source)?;
    until("the snapshot goes with its instance", || {
        Ok((copies(engine, text(&snapshot["id"]))? == 0).then_some(()))
    })?;
    server.finish()
}
