//! Resize of an existing instance.

use crate::context::Context;
use crate::found::{Found, find};
use crate::stats;
use wharf_guest::{Error, Report, Target};

/// Delay while the engine does something else with the instance, ms.
const BUSY_AGAIN_MS: u32 = 200;

/// See the `driver` interface. CPU, memory and disk change at once, running or not. If one part fails,
/// the engine undoes the others.
///
/// # Errors
/// See the `driver` interface; [`Error::Invalid`] on the field that the node refuses, and then nothing
/// has changed.
pub fn resize(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = find(ctx, &target.tag)?.ok_or(Error::NotFound)?;
    let shrinks = found.is_up() && shrinks(&found, target);
    if shrinks {
        stats::memory_suffices(ctx, &target.tag, target.size.mem_gib)?;
    }
    match ctx.api.change(false)? {
        Ok(()) => Ok(Report::settled(target.generation, found.phase())),
        Err(refusal) if refusal.is_not_found() => Err(Error::NotFound),
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        // The kernel refuses a limit below the usage.
        Err(refusal) if shrinks && refusal.status == 500 => Err(Error::more_memory_in_use()),
        Err(refusal) => Err(refusal.during("changing the size")),
    }
}

/// Whether the wanted memory is less than the present one.
fn shrinks(found: &Found, target: &Target) -> bool {
    let present = found.details.config.get("limits.memory");
    let gib = present.and_then(|text| text.strip_suffix("GiB")?.parse::<u32>().ok());
    // Set by hand, it may have another unit.
    gib.is_none_or(|gib| target.size.mem_gib < gib)
}
