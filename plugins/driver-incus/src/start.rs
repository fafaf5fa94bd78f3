//! The start of an instance with its size.

use crate::api::Outcome;
use crate::bodies::Change;
use crate::context::Context;
use crate::found::Found;
use wharf_guest::{Error, Size};

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
    if !resize(ctx, found, size)? {
        return Ok(Started::Gone);
    }
    start(ctx, &found.name)
}

/// Gives an instance this size, unless it has the size. False if it is gone.
///
/// # Errors
/// When the engine refuses.
pub fn resize(ctx: &Context, found: &Found, size: &Size) -> Result<bool, Error> {
    let change = Change::of(ctx, size);
    if change.is(&found.details.config, &found.details.devices) {
        return Ok(true);
    }
    match ctx.api.change(&found.name, &change)? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.is_not_found() => Ok(false),
        Err(refusal) => Err(refusal.during("applying the size")),
    }
}

/// Starts an instance.
///
/// # Errors
/// As those of [`start_sized`].
pub fn start(ctx: &Context, name: &str) -> Result<Started, Error> {
    match ctx.api.start(name)? {
        Ok(Outcome::Done) => Ok(Started::Running),
        Ok(Outcome::Unknown) => Ok(Started::Starting),
        Err(refusal) if refusal.is_running() => Ok(Started::Running),
        Err(refusal) if refusal.is_not_found() => Ok(Started::Gone),
        Err(refusal) if refusal.is_busy() => Ok(Started::Starting),
        Err(refusal) => Err(refusal.during("starting the instance")),
    }
}
