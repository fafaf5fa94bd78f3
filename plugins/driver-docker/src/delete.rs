//! Removal of an instance with everything that belongs to it.

use crate::context::Context;
use crate::found;
use crate::network;
use crate::product::Product;
use wharf_guest::{Error, Phase, Report, Target};

/// Delay while the engine is removing the container, ms.
const REMOVING_AGAIN_MS: u32 = 500;

/// Maximum number of containers with one instance's labels that a call removes. An instance has
/// one, or two while its disk grows; only someone with access to the engine can make more.
const MOST: u32 = 4;

/// See the `driver` interface. The network is checked even without a container: an earlier call may
/// have ended between the two removals.
pub fn delete(ctx: &Context, target: &Target) -> Result<Report, Error> {
    ctx.api.end_transfer()?;
    let mut removed = 0;
    while let Some(found) = found::any(ctx, &target.tag)? {
        if removed == MOST {
            return Err(Error::RetryLater(REMOVING_AGAIN_MS));
        }
        removed += 1;
        if found.is_up() && Product::of(ctx)?.waits_to_remove() {
            end(ctx, &found.name)?;
        }
        match ctx.api.remove(&found.name)? {
            Ok(()) => {}
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) if refusal.status == 409 => {
                return Err(Error::RetryLater(REMOVING_AGAIN_MS));
            }
            Err(refusal) => return Err(refusal.during("removing the container")),
        }
    }
    for network in [&target.network].into_iter().chain(&target.public_network) {
        network::remove_if_unused(ctx, network)?;
    }
    Ok(Report::settled(target.generation, Phase::Absent))
}

/// Stops without grace, which is immediate. Podman 4 takes tens of seconds to answer a kill.
fn end(ctx: &Context, name: &str) -> Result<(), Error> {
    match ctx.api.stop(name, 0)? {
        Ok(()) => Ok(()),
        // It has ended or was removed in the meantime.
        Err(refusal) if matches!(refusal.status, 404 | 409) => Ok(()),
        Err(refusal) => Err(refusal.during("ending the container")),
    }
}
