//! Removal of an instance with its disk.

use crate::api::Outcome;
use crate::context::Context;
use crate::{found, lifecycle};
use wharf_guest::{Error, Phase, Report, Target};

/// Delay while the engine is removing the instance, ms.
const REMOVING_AGAIN_MS: u32 = 500;

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface.
pub fn delete(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let Some(found) = found::find(ctx, &target.tag)? else {
        return Ok(found::settled(target.generation, Phase::Absent));
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
