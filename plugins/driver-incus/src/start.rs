//! The start of an instance with its size.
//!
//! The engine publishes ports at the end of a start. If it is killed before that, the instance runs without
//! them. A note in the configuration therefore tells of a start that has begun and not ended.

use crate::api::Outcome;
use crate::api::model::Instance;
use crate::context::Context;
use crate::found::Found;
use crate::{found, lifecycle, names};
use wharf_guest::{During, Error, Phase, Tag, log};

/// Delay while another instance still has the address, ms.
const ADDRESS_AGAIN_MS: u32 = 2_000;
/// Delay while the engine does something else with the instance, ms. It shows one as stopped before its stop has ended.
const BUSY_AGAIN_MS: u32 = 200;

/// How often the end of a start is noted while the engine does something else with the instance.
const NOTE_TRIES: u32 = 20;

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

/// Starts an instance with the size of the call.
///
/// # Errors
/// [`Error::Other`] for temporary problems; the instance is unchanged.
pub fn start_sized(ctx: &Context, found: &Found) -> Result<Started, Error> {
    if !change(ctx, found, true)? {
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
    ctx.api
        .is_operated(&found.name)?
        .during("listing the operations")
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
pub fn has_begun(found: &Found) -> bool {
    let note = found.details.config.get(names::START);
    note.is_some_and(|note| note == names::BEGUN)
}

/// Starts a running instance again if its last start was interrupted.
///
/// # Errors
/// As those of [`start_sized`], and [`Error::RetryLater`] while the engine is at work.
pub fn repeat_interrupted(ctx: &Context, found: &Found) -> Result<Option<Started>, Error> {
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
    if lifecycle::kill(ctx)? {
        start_sized(ctx, found).map(Some)
    } else {
        Ok(Some(Started::Gone))
    }
}

/// Gives an instance the size of the call, unless it has the size. False if it is gone.
pub fn resize(ctx: &Context, found: &Found) -> Result<bool, Error> {
    change(ctx, found, false)
}

/// Makes a change, unless the instance has it. False if the instance is gone.
fn change(ctx: &Context, found: &Found, before_start: bool) -> Result<bool, Error> {
    if has(&found.details, &ctx.api.changed(before_start)?) {
        return Ok(true);
    }
    match ctx.api.change(before_start)? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.is_not_found() => Ok(false),
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        Err(refusal) => Err(refusal.during("applying the size")),
    }
}

/// Whether an instance has the configuration and the sizes of a change.
fn has(instance: &Instance, change: &Instance) -> bool {
    let size = |of: &Instance, name: &str| of.devices.get(name)?.get("size").cloned();
    let mut config = change.config.iter();
    let mut devices = change.devices.keys();
    config.all(|(key, value)| instance.config.get(key) == Some(value))
        && devices.all(|name| size(instance, name) == size(change, name))
}

fn start(ctx: &Context, name: &str) -> Result<Started, Error> {
    let started = match ctx.api.start()? {
        Ok(Outcome::Done) => Started::Running,
        // An engine that still answers ends the start.
        Ok(Outcome::Unknown) => Started::Starting,
        Err(refusal) if refusal.is_running() => Started::Running,
        Err(refusal) if refusal.is_not_found() => return Ok(Started::Gone),
        Err(refusal) if refusal.is_starting() => return Ok(Started::Starting),
        Err(refusal) if refusal.is_busy() => return Err(Error::RetryLater(BUSY_AGAIN_MS)),
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
    note(ctx, started)
}

/// Notes the end of a start. Without the note, a later call would take the start as interrupted, and end an instance
/// that runs.
fn note(ctx: &Context, started: Started) -> Result<Started, Error> {
    for _ in 0..NOTE_TRIES {
        match ctx.api.note_start()? {
            Ok(()) => return Ok(started),
            Err(refusal) if refusal.is_not_found() => return Ok(Started::Gone),
            Err(refusal) if refusal.is_busy() => {}
            Err(refusal) => return Err(refusal.during("noting the start")),
        }
    }
    // Another call stops it.
    Ok(Started::Starting)
}
