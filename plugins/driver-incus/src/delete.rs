//! Removal of an instance with its disk. In OVN mode, its forwards precede it, and the network of its owner
//! follows the last instance.

use crate::api::Outcome;
use crate::content::{self, Of};
use crate::context::Context;
use crate::found::{Found, Place};
use crate::settings::Mode;
use crate::{forward, found, lifecycle, names, owner_network, phase};
use std::collections::BTreeSet;
use wharf_guest::{Error, Phase, Report, Target};

/// Delay while the engine is removing the instance, ms.
const REMOVING_AGAIN_MS: u32 = 500;

/// See the `driver` interface. Any member of the cluster may have the instance.
pub fn delete(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = match found::look(ctx, &target.tag)? {
        Place::Absent => None,
        Place::Here(found) | Place::Elsewhere(found) => Some(found),
    };
    let networks = networks(ctx, target, found.as_ref());
    let name = names::instance(ctx.installation, &target.tag);
    for network in &networks {
        forward::withdraw(ctx, network, &name)?;
    }
    if let Some(found) = &found {
        remove(ctx, found)?;
    }
    // Only the content of one that is not made yet may be on its way.
    let is_made = found.is_some_and(|found| phase::is_complete(&found.details));
    content::end(ctx, Of::Instance(&target.tag), !is_made)?;
    for network in &networks {
        owner_network::remove(ctx, network)?;
    }
    Ok(Report::settled(target.generation, Phase::Absent))
}

/// The networks that may have forwards of the instance: that of the call, and that of the instance. They
/// differ for an instance whose addresses are unknown, or that a move left without its new ones.
fn networks(ctx: &Context, target: &Target, found: Option<&Found>) -> BTreeSet<String> {
    match &ctx.settings.mode {
        Mode::Bridge => BTreeSet::new(),
        Mode::Ovn(_) => {
            let of_call = names::network(ctx.installation, &target.network.gateway);
            let own = found.and_then(|found| found.network(ctx.installation));
            [of_call]
                .into_iter()
                .chain(own.map(str::to_owned))
                .collect()
        }
    }
}

fn remove(ctx: &Context, found: &Found) -> Result<(), Error> {
    if found.is_up() {
        lifecycle::kill(ctx)?;
    }
    match ctx.api.remove()? {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Unknown) => return Err(Error::RetryLater(REMOVING_AGAIN_MS)),
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) if refusal.is_busy() || refusal.is_running() => {
            return Err(Error::RetryLater(REMOVING_AGAIN_MS));
        }
        Err(refusal) => return Err(refusal.during("removing the instance")),
    }
    Ok(())
}
