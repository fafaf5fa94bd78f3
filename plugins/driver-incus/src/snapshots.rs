//! Snapshots, which share blocks with the disk, and go with their instance. Only pools of btrfs restore another
//! one than the newest.
//!
//! The engine tells how many bytes a disk shares with nothing. So the configuration of an instance has the most
//! that the data of its last snapshot can take, and each snapshot has it with the configuration.

use crate::api::model::{Pool, Project};
use crate::api::{Outcome, Reply};
use crate::content::{self, Of};
use crate::context::Context;
use crate::found::{self, Found, Place};
use crate::{digest, ensure, id_range, names, owner_network};
use std::collections::{BTreeMap, BTreeSet};
use wharf_guest::{
    Complete, During, Error, GIB, ObservedSnapshot, Phase, Report, SnapshotKind, SnapshotReport,
    SnapshotState, Spec, Target, log,
};

/// The kind of pool that takes them.
const POOL: &str = "btrfs";
/// The key of a project, without whose value `allow` a restricted one takes none.
const PERMISSION: &str = "restricted.snapshots";
/// The most choices of a range of ids after a restore.
const CHOICES: u32 = 8;
/// Delay while the engine is at work on the instance, ms.
const AGAIN_MS: u32 = 500;

/// How the node takes snapshots.
pub fn kind(pool: &Pool, project: &Project) -> SnapshotKind {
    let value = |key: &str| project.config.get(key).map_or("", String::as_str);
    if pool.driver != POOL || value("restricted") == "true" && value(PERMISSION) != "allow" {
        SnapshotKind::None
    } else {
        SnapshotKind::Shared
    }
}

/// See the `snapshots` interface.
pub fn take(ctx: &Context, target: &Target, id: &str) -> Result<SnapshotReport, Error> {
    let found = found::find(ctx, &target.tag)?.ok_or(Error::NotFound)?;
    let config = &found.details.config;
    let bytes = if let Some(bytes) = noted(config, id) {
        if let Some(report) = begun(ctx, target, &found, id)? {
            return Ok(report);
        }
        bytes
    } else {
        let Some(bytes) = bytes(ctx, target, config)? else {
            let why = "the pool counts no usage".to_owned();
            return Ok(settled(SnapshotState::Failed(why)));
        };
        sized(ctx.api.note_snapshot(bytes)?)?;
        bytes
    };
    let mut taken = ctx.api.take_snapshot()?;
    if taken.as_ref().is_err_and(|refusal| refusal.is_full()) {
        sized(ctx.api.set_root(true)?)?;
        taken = ctx.api.take_snapshot()?;
        sized(ctx.api.set_root(false)?)?;
    }
    match taken {
        Ok(Outcome::Done) => Ok(settled(ready(config, bytes))),
        Ok(Outcome::Unknown) => Ok(copying()),
        Err(refusal) if refusal.is_not_found() => Err(Error::NotFound),
        Err(refusal) if refusal.is_busy() || refusal.is_name_taken() => Ok(copying()),
        Err(refusal) if refusal.is_forbidden() => Err(Error::Unsupported(format!(
            "snapshots: the project needs `{PERMISSION}=allow`"
        ))),
        Err(refusal) => Err(refusal.during("taking the snapshot")),
    }
}

/// The state of a snapshot that an earlier call has begun to take; none if it is to be taken again.
fn begun(
    ctx: &Context,
    target: &Target,
    found: &Found,
    id: &str,
) -> Result<Option<SnapshotReport>, Error> {
    let snapshot = match ctx.api.snapshot()? {
        Ok(snapshot) => snapshot,
        Err(refusal) if refusal.is_not_found() => return Ok(None),
        Err(refusal) => return Err(refusal.during("reading the snapshot")),
    };
    if snapshot.size >= 0 {
        let whole = u64::from(target.size.disk_size_gib) * GIB;
        let bytes = noted(&snapshot.config, id).unwrap_or(whole);
        return Ok(Some(settled(ready(&snapshot.config, bytes))));
    }
    let is_operated = ctx.api.is_operated(&found.name)?;
    if !is_operated.during("listing the operations")? {
        // An interrupted call has left the engine's record of it, without a disk.
        remove(ctx)?;
    }
    Ok(Some(copying()))
}

/// The bytes in the note of a snapshot.
pub fn noted(config: &BTreeMap<String, String>, id: &str) -> Option<u64> {
    let note = config.get(names::SNAPSHOT)?;
    note.strip_prefix(id)?.trim_start().parse().ok()
}

/// The most that the data of the next snapshot can take; none if the pool does not count.
fn bytes(
    ctx: &Context,
    target: &Target,
    config: &BTreeMap<String, String>,
) -> Result<Option<u64>, Error> {
    let state = ctx.api.state()?.during("reading the usage")?;
    let used = state.disk.get("root").map_or(0, |disk| disk.usage);
    let Some(used) = u64::try_from(used).ok().filter(|used| *used > 0) else {
        return Ok(None);
    };
    // It may share all of its last snapshot, and else all of its source.
    let last = config.get(names::SNAPSHOT);
    let last = last.and_then(|note| note.split_once(' '));
    let shared = match last {
        Some((_, bytes)) if has_snapshots(ctx)? => Some(bytes),
        _ => config.get(names::BASE).map(String::as_str),
    };
    let shared = shared.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    let whole = u64::from(target.size.disk_size_gib) * GIB;
    Ok(Some(whole.min(used.saturating_add(shared))))
}

fn has_snapshots(ctx: &Context) -> Result<bool, Error> {
    let listed = ctx.api.own_snapshots()?.during("listing the snapshots")?;
    Ok(!listed.is_empty())
}

/// The state of a complete snapshot, whose data takes at most these bytes.
pub fn ready(config: &BTreeMap<String, String>, bytes: u64) -> SnapshotState {
    SnapshotState::Ready(Complete {
        bytes,
        clonable: is_clonable(config),
    })
}

/// Whether the image of an instance or a snapshot has clones.
pub fn is_clonable(config: &BTreeMap<String, String>) -> bool {
    config.get(names::CLONABLE).is_some_and(|is| is == "1")
}

/// See the `snapshots` interface.
pub fn drop(ctx: &Context, id: &str) -> Result<SnapshotReport, Error> {
    remove(ctx)?;
    content::end(ctx, Of::Snapshot(id), true)?;
    Ok(settled(SnapshotState::Absent))
}

fn remove(ctx: &Context) -> Result<(), Error> {
    match ctx.api.drop_snapshot()? {
        Ok(Outcome::Done) => Ok(()),
        Ok(Outcome::Unknown) => Err(Error::RetryLater(AGAIN_MS)),
        Err(refusal) if refusal.is_not_found() => Ok(()),
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(AGAIN_MS)),
        Err(refusal) => Err(refusal.during("removing the snapshot")),
    }
}

/// See the `snapshots` interface. Names are enough, as for volumes.
pub fn list(ctx: &Context) -> Result<Vec<ObservedSnapshot>, Error> {
    let listed = ctx.api.snapshots()?.during("listing the snapshots")?;
    let observed = listed.into_iter().filter_map(|(instance, name)| {
        Some(ObservedSnapshot {
            id: names::snapshot(&name)?.to_owned(),
            instance: names::tag(ctx.installation, &instance)?,
            state: SnapshotState::Ready(Complete {
                bytes: 0,
                clonable: false,
            }),
        })
    });
    Ok(observed.collect())
}

/// Creates an instance with the disk of its source.
///
/// # Errors
/// When the engine does not answer.
pub fn clone(ctx: &Context, spec: &Spec) -> Result<Result<Reply<Outcome>, String>, Error> {
    let source = match ctx.api.snapshot()? {
        Ok(source) if is_clonable(&source.config) => source,
        Ok(_) => return Ok(Err("its image has no clones".to_owned())),
        Err(refusal) if refusal.is_not_found() => {
            return Ok(Err("the snapshot is gone".to_owned()));
        }
        Err(refusal) => return Err(refusal.during("reading the snapshot")),
    };
    let bytes = source.config.get(names::SNAPSHOT);
    let bytes = bytes.and_then(|note| note.rsplit(' ').next()?.parse().ok());
    let bytes = bytes.unwrap_or(u64::from(spec.size.disk_size_gib) * GIB);
    Ok(Ok(ctx.api.create_clone(&digest::of(spec), bytes)?))
}

/// Whether an instance has its disk from a snapshot, and not yet devices of its own.
pub fn is_bare(found: &Found) -> bool {
    let nic = found.details.devices.get("eth0");
    nic.is_some_and(|nic| nic.get("type").is_some_and(|kind| kind == "none"))
}

/// See the `snapshots` interface. The engine also restores configuration and devices, which the instance then
/// gets anew.
pub fn restore(ctx: &Context, spec: &Spec, id: &str) -> Result<Report, Error> {
    ensure::supported(spec)?;
    let restoring = || {
        let phase = Phase::Growing("the engine restores the disk".to_owned());
        Report::again(spec.generation, phase, AGAIN_MS)
    };
    let found = match found::look(ctx, &spec.tag)? {
        Place::Absent => return Err(Error::NotFound),
        Place::Here(found) => found,
        Place::Elsewhere(found) => return Ok(Report::settled(spec.generation, found.elsewhere())),
    };
    if found.is_up() {
        return Ok(Report::settled(spec.generation, found.phase()));
    }
    if ctx
        .api
        .is_operated(&found.name)?
        .during("listing the operations")?
    {
        return Ok(restoring());
    }
    let says = |key: &str, value: &str| found.details.config.get(key).is_some_and(|is| is == value);
    let has_begun = says(names::RESTORE, id);
    // An image for a move that was given up has another disk.
    content::forget(ctx, Of::Instance(&spec.tag))?;
    // The engine refuses each restore after a left-over, and a note would then tell of a restored disk.
    if !has_begun && !says(names::LEFT_OVER, "1") {
        sized(ctx.api.note_restore()?)?;
    }
    match ctx.api.restore()? {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Unknown) => return Ok(restoring()),
        Err(refusal) if refusal.is_busy() => return Ok(restoring()),
        // The disk is restored, and has no room for the engine's own file.
        Err(refusal) if refusal.is_full() => {}
        Err(refusal) if refusal.is_left_over() => {
            log!(Warn, "{}: {}", found.name, refusal.message);
            sized(ctx.api.note_left_over(has_begun)?)?;
            // If it has begun, an interrupted call has restored the disk. The engine never removes the earlier
            // one, and restores this instance no more.
            if !has_begun {
                return Err(refusal.during("restoring the snapshot"));
            }
        }
        Err(refusal) if refusal.is_not_found() || refusal.is_absent() => {
            return Err(Error::NotFound);
        }
        Err(refusal) => return Err(refusal.during("restoring the snapshot")),
    }
    // An error would say that the disk is as it was.
    match renew(ctx, spec) {
        Err(error) if !matches!(error, Error::RetryLater(_)) => {
            log!(Warn, "{}, whose disk is restored: {error:?}", found.name);
            Ok(restoring())
        }
        renewed => renewed,
    }
}

/// Gives an instance with a restored disk all else that it had.
fn renew(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    let mut found = found::find(ctx, &spec.tag)?.ok_or(Error::NotFound)?;
    if found.details.devices.iter().any(is_part) {
        sized(ctx.api.mask()?)?;
    }
    // Another instance may have its range of ids. A further call would restore this range too.
    let mut choices = 0;
    while let Some(again_ms) = id_range::compare(ctx, &spec.tag, &found, &BTreeSet::new())? {
        choices += 1;
        if choices == CHOICES {
            return Err(Error::RetryLater(again_ms));
        }
        found = found::find(ctx, &spec.tag)?.ok_or(Error::NotFound)?;
    }
    sized(ctx.api.set_root(true)?)?;
    furnish(ctx, spec, true)?;
    Ok(Report::settled(spec.generation, Phase::Stopped(None)))
}

/// Gives an instance with the disk of a snapshot its own configuration, devices and size.
///
/// # Errors
/// When the engine refuses, and [`Error::RetryLater`] while it is at work.
pub fn furnish(ctx: &Context, spec: &Spec, restored: bool) -> Result<(), Error> {
    owner_network::ensure(ctx, &spec.network)?;
    sized(ctx.api.furnish(&digest::of(spec), restored)?)
}

/// Whether a device is a volume, a GPU or a port. It may be of something that is gone.
fn is_part((name, device): (&String, &BTreeMap<String, String>)) -> bool {
    let parts = ["vol-", "gpu", "port"];
    parts.iter().any(|part| name.starts_with(part))
        && device.get("type").is_some_and(|kind| kind != "none")
}

/// The answer to a change of the instance. On a full disk, the engine makes the change and tells of its own
/// file, which it cannot write.
fn sized(reply: Reply<()>) -> Result<(), Error> {
    match reply {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_full() => Ok(()),
        Err(refusal) if refusal.is_not_found() => Err(Error::NotFound),
        Err(refusal) if refusal.is_busy() || refusal.is_address_taken() => {
            Err(Error::RetryLater(AGAIN_MS))
        }
        Err(refusal) => Err(refusal.during("changing the instance")),
    }
}

/// A snapshot whose state does not change by itself.
pub fn settled(state: SnapshotState) -> SnapshotReport {
    SnapshotReport {
        state,
        again_ms: None,
    }
}

fn copying() -> SnapshotReport {
    SnapshotReport {
        state: SnapshotState::Copying("the engine is at work".to_owned()),
        again_ms: Some(AGAIN_MS),
    }
}
