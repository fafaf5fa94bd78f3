//! Moves of content between this engine and that of another node, and backups of snapshots.
//!
//! The old node offers the content of its container, which stays as it is. The new node creates `…-part`, and the host
//! copies everything to it, as for a larger disk ([`crate::grow`]). The names record the progress: a `…-part` without a
//! transfer of this host is removed and created again, and a `…-whole` has all content. A restored backup comes in the
//! same way, but counts as never started.
//!
//! A snapshot is an image, and only containers are read. So the content of one leaves by its carrier: a container of that
//! image that never runs. It belongs to no instance, and the snapshot cannot be removed before it.

use crate::context::Context;
use crate::ensure::Replaced;
use crate::found::{self, is_called};
use crate::grow::{self, removed, renamed};
use crate::names;
use crate::product::Product;
use crate::snapshots::{self, settled};
use wharf_guest::{
    Error, Moving, Phase, Report, ResourceType, SnapshotReport, SnapshotState, Spec, Target, log,
};

/// Delay while content is copied, ms.
const LOOK_AGAIN_MS: u32 = 200;
/// Delay while an earlier container of the instance is removed, ms.
const GIVEN_UP_MS: u32 = 2_000;

/// See the `content` interface.
pub fn offer(ctx: &Context, target: &Target) -> Result<Report, Error> {
    supported(ctx, target.resource_type)?;
    let found = found::find(ctx, &target.tag, false)?.ok_or(Error::NotFound)?;
    if !found.is_up() {
        if let Some(path) = grow::elsewhere(&found, &[]) {
            return Err(Error::Conflict(format!("{path} is on a volume")));
        }
        ctx.api.offer_content(&found.name)?;
    }
    Ok(Report::settled(target.generation, found.phase()))
}

/// See the `content` interface.
pub fn fetch(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    supported(ctx, spec.resource_type)?;
    let listed = found::listed(ctx, &spec.tag)?;
    let named = |name: &str| listed.iter().find(|one| is_called(one, name));
    if named(&names::container(&spec.tag)).is_some() {
        let found = found::find(ctx, &spec.tag, false)?;
        let found = found.ok_or(Error::RetryLater(LOOK_AGAIN_MS))?;
        return Ok(Report::settled(spec.generation, found.phase()));
    }
    if named(&names::whole(&spec.tag)).is_some() {
        return complete(ctx, spec);
    }
    let moved = ctx.api.transfer().or_else(|error| {
        grow::give_up(ctx)?;
        Err(error)
    })?;
    if !matches!(moved, Moving::Nothing) && named(&names::part(&spec.tag)).is_none() {
        // It is one of an earlier move, whose container has another incarnation.
        grow::give_up(ctx)?;
        return Err(Error::RetryLater(LOOK_AGAIN_MS));
    }
    match moved {
        Moving::Under(progress) => Ok(moving(spec, progress.unwrap_or_default())),
        Moving::Ended(Ok(())) => {
            renamed(ctx.api.name_whole()?)?;
            complete(ctx, spec)
        }
        Moving::Ended(Err(refusal)) => {
            grow::give_up(ctx)?;
            Err(if refusal.is_no_space() || refusal.is_immovable() {
                Error::Unsupported(refusal.message.clone())
            } else {
                refusal.during("copying the content")
            })
        }
        Moving::Nothing => {
            removed(ctx.api.remove_part()?)?;
            if let Some(report) = grow::make(ctx, spec, None, Replaced::Elsewhere)? {
                let progress = match report.phase {
                    Phase::Growing(progress) => progress,
                    _ => String::new(),
                };
                return Ok(moving(spec, progress));
            }
            ctx.api.fetch_content()?;
            Ok(moving(spec, String::new()))
        }
    }
}

/// Gives a container with all content the instance's name.
fn complete(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    match ctx.api.name_own()? {
        Ok(()) => {}
        // A container that an earlier move has left is removed soon.
        Err(refusal) if refusal.is_name_taken() => return Err(Error::RetryLater(GIVEN_UP_MS)),
        Err(refusal) => return Err(refusal.during("renaming the container")),
    }
    log!(
        Info,
        "instance {} has come from elsewhere",
        spec.tag.instance
    );
    let phase = if spec.fetched {
        Phase::Creating
    } else {
        Phase::Stopped(None)
    };
    Ok(Report::settled(spec.generation, phase))
}

/// See the `content` interface.
pub fn send(ctx: &Context) -> Result<SnapshotReport, Error> {
    able(ctx)?;
    let Some(complete) = snapshots::complete(ctx)? else {
        return Ok(settled(SnapshotState::Absent));
    };
    let sent = ctx.api.transfer().or_else(|error| {
        end_send(ctx)?;
        Err(error)
    })?;
    match sent {
        Moving::Under(progress) => Ok(sending(progress.unwrap_or_default())),
        Moving::Ended(Ok(())) => {
            // The end of the transfer is told once.
            if let Err(error) = end_send(ctx) {
                log!(Warn, "a carrier stays until its snapshot goes: {error:?}");
            }
            Ok(settled(SnapshotState::Ready(complete)))
        }
        Moving::Ended(Err(refusal)) => {
            end_send(ctx)?;
            if refusal.is_immovable() {
                Ok(settled(SnapshotState::Failed(refusal.message.clone())))
            } else {
                Err(refusal.during("reading the content"))
            }
        }
        Moving::Nothing => {
            match ctx.api.create_carrier()? {
                Ok(()) => {}
                // One of an earlier call has never changed.
                Err(refusal) if refusal.is_name_taken() => {}
                Err(refusal) if refusal.is_no_image() => {
                    return Ok(settled(SnapshotState::Absent));
                }
                Err(refusal) => return Err(refusal.during("creating the carrier")),
            }
            ctx.api.send_content()?;
            Ok(sending(String::new()))
        }
    }
}

/// Ends the transfer of the call's snapshot, and removes its carrier.
pub fn end_send(ctx: &Context) -> Result<(), Error> {
    ctx.api.end_transfer()?;
    removed(ctx.api.remove_carrier()?)
}

fn sending(progress: String) -> SnapshotReport {
    SnapshotReport {
        state: SnapshotState::Copying(progress),
        again_ms: Some(LOOK_AGAIN_MS),
    }
}

fn moving(spec: &Spec, progress: String) -> Report {
    Report::again(spec.generation, Phase::Elsewhere(progress), LOOK_AGAIN_MS)
}

/// The disk of a virtual machine is one sparse file, which an archive has in full.
fn supported(ctx: &Context, what: ResourceType) -> Result<(), Error> {
    if what != ResourceType::Container {
        return Err(Error::Unsupported("moves of virtual machines".into()));
    }
    able(ctx)
}

/// Fails where content cannot move.
pub fn able(ctx: &Context) -> Result<(), Error> {
    if !Product::of(ctx)?.moves_content() {
        let why = "moves of content: this engine does not keep owners of files";
        return Err(Error::Unsupported(why.into()));
    }
    Ok(())
}
