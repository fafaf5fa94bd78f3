//! The start of an instance with its size.
//!
//! The engine publishes ports at the end of a start. If it is killed before that, the instance runs without
//! them. A note in the configuration therefore tells of a start that has begun and not ended.

use crate::api::Outcome;
use crate::bodies::Change;
use crate::context::Context;
use crate::found::Found;
use crate::{found, lifecycle, names};
use wharf_guest::{Error, Phase, Size, Tag, log};

/// Delay while another instance still has the address, ms.
const ADDRESS_AGAIN_MS: u32 = 2_000;

/// The result of a start.
#[derive(Debug, PartialEq, Eq)]
pub enum Started {
    /// The instance runs.
    Running,
    /// The start is in progress.
    Starting,
    /// The instance is gone.
    Gone,
}

/// Starts an instance with this size.
///
/// # Errors
/// [`Error::Other`] for temporary problems; the instance is unchanged.
pub fn start_sized(ctx: &Context, found: &Found, size: &Size) -> Result<Started, Error> {
    if !change(ctx, found, &Change::before_start(ctx, size))? {
        return Ok(Started::Gone);
    }
    start(ctx, &found.name)
}

/// Whether a start of an interrupted call goes on.
///
/// # Errors
/// When the engine refuses to list its operations.
pub fn goes_on(ctx: &Context, found: &Found) -> Result<bool, Error> {
    if !has_begun(found) {
        return Ok(false);
    }
    let operated = ctx.api.is_operated(&found.name)?;
    operated.map_err(|refusal| refusal.during("listing the operations"))
}

/// Whether an instance that looked stopped is in a start of an interrupted call. The engine dates a start
/// before it runs the instance.
///
/// # Errors
/// As those of [`goes_on`].
pub fn is_under_way(ctx: &Context, tag: &Tag, found: &Found) -> Result<bool, Error> {
    if goes_on(ctx, found)? {
        return Ok(true);
    }
    // It may have ended between the two looks.
    let runs = |found: &Found| matches!(found.phase(), Phase::Ready | Phase::Booting);
    Ok(has_begun(found) && found::find(ctx, tag)?.as_ref().is_some_and(runs))
}

/// Whether a start has begun and not ended.
#[must_use]
pub fn has_begun(found: &Found) -> bool {
    let note = found.details.config.get(names::START);
    note.is_some_and(|note| note == names::BEGUN)
}

/// Starts a running instance again if its last start was interrupted.
///
/// # Errors
/// As those of [`start_sized`], and [`Error::RetryLater`] while the engine is at work.
pub fn repeat_interrupted(
    ctx: &Context,
    found: &Found,
    size: &Size,
) -> Result<Option<Started>, Error> {
    if !has_begun(found) {
        return Ok(None);
    }
    if goes_on(ctx, found)? {
        return Ok(Some(Started::Starting));
    }
    log!(
        Warn,
        "the start of {} was interrupted; it is started again",
        found.name
    );
    match lifecycle::kill(ctx, &found.name)? {
        true => start_sized(ctx, found, size).map(Some),
        false => Ok(Some(Started::Gone)),
    }
}

/// Gives an instance this size, unless it has the size. False if it is gone.
///
/// # Errors
/// When the engine refuses.
pub fn resize(ctx: &Context, found: &Found, size: &Size) -> Result<bool, Error> {
    change(ctx, found, &Change::of(ctx, size))
}

/// Makes a change, unless the instance has it. False if the instance is gone.
fn change(ctx: &Context, found: &Found, change: &Change) -> Result<bool, Error> {
    if change.is(&found.details.config, &found.details.devices) {
        return Ok(true);
    }
    match ctx.api.change(&found.name, change)? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.is_not_found() => Ok(false),
        Err(refusal) => Err(refusal.during("applying the size")),
    }
}

fn start(ctx: &Context, name: &str) -> Result<Started, Error> {
    let started = match ctx.api.start(name)? {
        Ok(Outcome::Done) => Started::Running,
        // An engine that still answers ends the start.
        Ok(Outcome::Unknown) => Started::Starting,
        Err(refusal) if refusal.is_running() => Started::Running,
        Err(refusal) if refusal.is_not_found() => return Ok(Started::Gone),
        Err(refusal) if refusal.is_busy() => return Ok(Started::Starting),
        Err(refusal) if refusal.is_address_taken() => {
            log!(Warn, "{name}: {}", refusal.message);
            return Err(Error::RetryLater(ADDRESS_AGAIN_MS));
        }
        Err(refusal) => {
            return Err(match Error::taken(&refusal.message) {
                Some(taken) => {
                    log!(Warn, "{name}: {}", refusal.message);
                    taken
                }
                None => refusal.during("starting the instance"),
            });
        }
    };
    match ctx.api.note_start(name)? {
        Ok(()) => Ok(started),
        Err(refusal) if refusal.is_not_found() => Ok(Started::Gone),
        // Another call stops it.
        Err(refusal) if refusal.is_busy() => Ok(Started::Starting),
        Err(refusal) => Err(refusal.during("noting the start")),
    }
}
