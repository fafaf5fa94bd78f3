//! Removing an instance with everything that was its own.

use crate::context::Context;
use crate::found;
use crate::network;
use crate::product::Product;
use wharf_guest::{Error, Phase, Report, Target};

/// The engine is removing it already; that ends soon.
const REMOVING_AGAIN_MS: u32 = 500;

/// Containers with one instance's labels that one call removes; there is one, or two while its disk
/// grows, but for someone with access to the engine who made more.
const MOST: u32 = 4;

/// See the `driver` interface. The network is looked at even if the container is gone: an earlier
/// call may have ended between the two.
///
/// # Errors
/// See the `driver` interface.
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
    Ok(found::settled(target.generation, Phase::Absent))
}

/// A stop without grace is at once: Podman 4 answers a kill only tens of seconds later.
fn end(ctx: &Context, name: &str) -> Result<(), Error> {
    match ctx.api.stop(name, 0)? {
        Ok(()) => Ok(()),
        // Ended or removed in the meantime.
        Err(refusal) if matches!(refusal.status, 404 | 409) => Ok(()),
        Err(refusal) => Err(refusal.during("ending the container")),
    }
}
