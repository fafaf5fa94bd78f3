//! Removal of an instance with its disk.

use crate::api::Outcome;
use crate::context::Context;
use crate::found::Place;
use crate::{found, lifecycle};
use wharf_guest::{Error, Phase, Report, Target};

/// Delay while the engine is removing the instance, ms.
const REMOVING_AGAIN_MS: u32 = 500;

/// See the `driver` interface. Any member of the cluster may have the instance.
///
/// # Errors
/// See the `driver` interface.
pub fn delete(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = match found::look(ctx, &target.tag)? {
        Place::Absent => return Ok(found::settled(target.generation, Phase::Absent)),
        Place::Here(found) | Place::Elsewhere(found) => found,
    };
    if found.is_up() {
        lifecycle::kill(ctx, &found.name)?;
    }
    match ctx.api.remove(&found.name)? {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Unknown) => return Err(Error::RetryLater(REMOVING_AGAIN_MS)),
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) if refusal.is_busy() || refusal.is_running() => {
            return Err(Error::RetryLater(REMOVING_AGAIN_MS));
        }
        Err(refusal) => return Err(refusal.during("removing the instance")),
    }
    Ok(found::settled(target.generation, Phase::Absent))
}
