//! Start and stop of an existing instance.

use crate::context::Context;
use crate::found;
use crate::grow;
use crate::snapshots;
use crate::start::{self, Started};
use wharf_guest::{Error, Phase, Report, Target};

/// Delay after a start: the engine then knows whether the first process is alive, ms.
const LOOK_AGAIN_MS: u32 = 500;

/// See the `driver` interface. A container that never ran is reported as `creating`: only `ensure`
/// has the user's secrets to complete it.
pub fn start(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = found::find(ctx, &target.tag, false)?.ok_or(Error::NotFound)?;
    let limits = ctx.api.limits()?;
    match found.phase() {
        Phase::Stopped(_) => {
            if grow::is_due(ctx, &found, target)? {
                let phase = Phase::Growing("about to begin".into());
                return Ok(Report::again(target.generation, phase, 0));
            }
        }
        phase @ (Phase::Ready | Phase::Booting) => {
            snapshots::is_copied(ctx, &found)?;
            // An earlier call may have ended between the start and the resize. A change that failed
            // may still be in effect.
            start::resize(ctx, &found, &limits)?;
            return Ok(Report::settled(target.generation, phase));
        }
        phase => return Ok(Report::settled(target.generation, phase)),
    }
    let networks: Vec<_> = [&target.network]
        .into_iter()
        .chain(&target.public_network)
        .collect();
    match start::start_sized(ctx, &found, &limits, &networks)? {
        Started::Running => Ok(Report::again(
            target.generation,
            Phase::Booting,
            LOOK_AGAIN_MS,
        )),
        Started::Gone => Err(Error::NotFound),
        Started::HalfStarted(why) => Err(Error::Other(format!("starting the container: {why}"))),
        Started::Never(why) | Started::NoKvm(why) | Started::NoView(why) => {
            let reason = format!("the container cannot be started: {why}");
            Ok(Report::settled(target.generation, Phase::Failed(reason)))
        }
    }
}

/// See the `driver` interface. Returns when the container has stopped.
pub fn stop(ctx: &Context, target: &Target, grace_ms: u32) -> Result<Report, Error> {
    let Some(found) = found::find(ctx, &target.tag, false)? else {
        return Ok(Report::settled(target.generation, Phase::Absent));
    };
    let reason = match found.phase() {
        Phase::Stopped(reason) => {
            grow::give_up(ctx)?;
            reason
        }
        Phase::Creating => Some("never started".into()),
        // Processes that stand still could not end in order.
        _ if snapshots::is_copied(ctx, &found)? => return Err(Error::RetryLater(LOOK_AGAIN_MS)),
        _ => match ctx.api.stop(&found.name, grace_ms)? {
            Ok(()) => None,
            Err(refusal) if refusal.is_not_found() => {
                return Ok(Report::settled(target.generation, Phase::Absent));
            }
            Err(refusal) => return Err(refusal.during("stopping the container")),
        },
    };
    Ok(Report::settled(target.generation, Phase::Stopped(reason)))
}
