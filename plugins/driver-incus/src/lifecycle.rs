//! Start and stop of an existing instance.

use crate::api::Outcome;
use crate::content::{self, Of};
use crate::context::Context;
use crate::found::{self, Place};
use crate::start::{self, Started};
use wharf_guest::{Error, Phase, Report, Target};

/// Delay after a start: the engine then knows whether the first process is alive, ms.
const LOOK_AGAIN_MS: u32 = 500;

/// See the `driver` interface. An instance that never ran is reported as `creating`: only `ensure` has
/// the user's secrets to complete it.
pub fn start(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = match found::look(ctx, &target.tag)? {
        Place::Absent => return Err(Error::NotFound),
        Place::Here(found) => found,
        Place::Elsewhere(found) => {
            return Ok(Report::settled(target.generation, found.elsewhere()));
        }
    };
    let started = match found.phase() {
        Phase::Stopped(_) => {
            // An image for a move that was given up.
            content::forget(ctx, Of::Instance(&target.tag))?;
            start::start_sized(ctx, &found)?
        }
        phase @ (Phase::Ready | Phase::Booting) => {
            match start::repeat_interrupted(ctx, &found)? {
                Some(started) => started,
                // It may have been started by hand, with another size.
                None if start::resize(ctx, &found)? => {
                    return Ok(Report::settled(target.generation, phase));
                }
                None => Started::Gone,
            }
        }
        phase => return Ok(Report::settled(target.generation, phase)),
    };
    match started {
        Started::Running | Started::Starting => Ok(Report::again(
            target.generation,
            Phase::Booting,
            LOOK_AGAIN_MS,
        )),
        Started::Gone => Err(Error::NotFound),
    }
}

/// See the `driver` interface. Returns when the instance has stopped, on whichever member it is.
pub fn stop(ctx: &Context, target: &Target, grace_ms: u32) -> Result<Report, Error> {
    let found = match found::look(ctx, &target.tag)? {
        Place::Absent => return Ok(Report::settled(target.generation, Phase::Absent)),
        Place::Here(found) | Place::Elsewhere(found) => found,
    };
    let reason = match found.phase() {
        Phase::Stopped(reason) => reason,
        Phase::Creating => Some("never started".into()),
        _ => {
            if end(ctx, grace_ms)? {
                None
            } else {
                return Ok(Report::settled(target.generation, Phase::Absent));
            }
        }
    };
    Ok(Report::settled(target.generation, Phase::Stopped(reason)))
}

/// Stops an instance within the grace, then by force. False if it is gone.
fn end(ctx: &Context, grace_ms: u32) -> Result<bool, Error> {
    match ctx.api.stop(grace_ms)? {
        Ok(Outcome::Done) => return Ok(true),
        Err(refusal) if refusal.is_stopped() => return Ok(true),
        Err(refusal) if refusal.is_not_found() => return Ok(false),
        Err(refusal) if !refusal.is_too_slow() && !refusal.is_busy() => {
            return Err(refusal.during("stopping the instance"));
        }
        Ok(Outcome::Unknown) | Err(_) => {}
    }
    kill(ctx)
}

/// Stops an instance without grace. False if it is gone.
///
/// # Errors
/// When the engine refuses, and [`Error::RetryLater`] while it is at work.
pub fn kill(ctx: &Context) -> Result<bool, Error> {
    match ctx.api.kill()? {
        Ok(Outcome::Done) => Ok(true),
        Ok(Outcome::Unknown) => Err(Error::RetryLater(LOOK_AGAIN_MS)),
        Err(refusal) if refusal.is_stopped() => Ok(true),
        Err(refusal) if refusal.is_not_found() => Ok(false),
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(LOOK_AGAIN_MS)),
        Err(refusal) => Err(refusal.during("ending the instance")),
    }
}
