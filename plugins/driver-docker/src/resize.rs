//! Resize of an existing instance.

use crate::api::Refusal;
use crate::context::Context;
use crate::found::{Found, find};
use crate::vm::disk_size_of;
use crate::{libpod, names, stats};
use wharf_guest::{Error, GIB, Report, Size, Target, log};

/// See the `driver` interface. CPU and memory change at once; a disk changes only before a start.
/// The request is sent even if the engine reports the new size: before 5, Podman always reports the
/// size of the creation.
///
/// # Errors
/// See the `driver` interface; [`Error::Invalid`] on the field that the node refuses, and then
/// nothing has changed.
pub fn resize(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = find(ctx, &target.tag, false)?.ok_or(Error::NotFound)?;
    disk_is_kept(&found, target)?;
    memory_suffices(ctx, &found, &target.size)?;
    match ctx.api.resize(&found.name)? {
        Ok(()) => {}
        // A stopped instance gets its size at the next start.
        Err(refusal) if refusal.is_unknown_request() && !found.is_up() => {}
        Err(refusal) if refusal.is_unknown_request() => {
            libpod::resize(ctx, &found, &ctx.api.limits()?)?;
        }
        Err(refusal) => {
            restore(ctx, &found);
            return Err(refused(&refusal, &found, &target.size));
        }
    }
    Ok(Report::settled(target.generation, found.phase()))
}

/// Only a limited disk has a size.
fn disk_is_kept(found: &Found, target: &Target) -> Result<(), Error> {
    let wanted = disk_size_of(&target.size, target.resource_type);
    if found
        .label(names::DISK)
        .is_some_and(|limit| limit != wanted)
    {
        let message = "cannot grow while the instance runs; stop it first, then change it and \
                       restart the instance";
        return Err(Error::invalid("disk_size_gib", message));
    }
    Ok(())
}

/// Checks the usage before the request. On cgroups v2, the kernel would enforce a limit below the
/// usage by ending processes.
fn memory_suffices(ctx: &Context, found: &Found, size: &Size) -> Result<(), Error> {
    if !found.is_up() || !shrinks(found, size) {
        return Ok(());
    }
    let memory = stats::sample(ctx, &found.name)?.memory_stats;
    let needed = stats::needed(ctx, found, &memory)?;
    if needed > bytes(size) {
        return Err(Error::memory_in_use(needed));
    }
    Ok(())
}

/// Restores the old size. Podman keeps the wrong value of a failed update.
fn restore(ctx: &Context, found: &Found) {
    if !matches!(ctx.api.resize_back(&found.name), Ok(Ok(()))) {
        log!(Warn, "cannot restore the old size of {}", found.name);
    }
}

fn refused(refusal: &Refusal, found: &Found, size: &Size) -> Error {
    if refusal.is_no_container() {
        Error::NotFound
    } else if shrinks(found, size) {
        Error::more_memory_in_use()
    } else {
        refusal.during("changing the size")
    }
}

/// A value of 0 means no limit.
fn shrinks(found: &Found, size: &Size) -> bool {
    let current = u64::try_from(found.details.host_config.memory).unwrap_or(0);
    current == 0 || bytes(size) < current
}

fn bytes(size: &Size) -> u64 {
    u64::from(size.mem_gib) * GIB
}
