//! Moves from another member of the cluster to this one.

use crate::api::Outcome;
use crate::context::Context;
use crate::ensure::supported;
use crate::found::{self, Found, Place};
use crate::{digest, forward, id_range, names, owner_network};
use std::collections::BTreeSet;
use wharf_guest::{During, Error, Phase, Report, Spec};

/// Delay while the engine copies the disk, ms.
const MOVING_AGAIN_MS: u32 = 2_000;

/// See the `moves` interface. The engine moves the disk; then the instance gets the addresses and ports of
/// this member. A port that still names the old member would prevent its start.
pub fn move_here(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    supported(spec)?;
    let moving = |why: &str| {
        let phase = Phase::Elsewhere(why.to_owned());
        Ok(Report::again(spec.generation, phase, MOVING_AGAIN_MS))
    };
    match found::look(ctx, &spec.tag)? {
        Place::Absent if !is_gone(ctx, spec)? => moving("the engine is at work"),
        Place::Absent => Ok(Report::settled(spec.generation, Phase::Absent)),
        Place::Here(found) => readdress(ctx, spec, &found),
        Place::Elsewhere(found) if found.is_up() => {
            Ok(Report::settled(spec.generation, found.phase()))
        }
        // A second copy beside one under way would meet the disk of the first.
        Place::Elsewhere(_) if is_operated(ctx, spec)? => moving("the engine is at work"),
        Place::Elsewhere(_) => match ctx.api.move_here()? {
            Ok(Outcome::Done) => match found::look(ctx, &spec.tag)? {
                Place::Here(found) => readdress(ctx, spec, &found),
                _ => moving("the move has just ended"),
            },
            Ok(Outcome::Unknown) => moving("the engine copies the disk"),
            Err(refusal) if refusal.is_busy() || refusal.is_still_running() => {
                moving("the engine is at work")
            }
            // The copy of an interrupted call began or is being removed since the look.
            Err(refusal) if refusal.is_copied_already() && is_operated(ctx, spec)? => {
                moving("the engine is at work")
            }
            Err(refusal) if refusal.is_not_found() => {
                if is_operated(ctx, spec)? {
                    return moving("the engine is at work");
                }
                match found::look(ctx, &spec.tag)? {
                    Place::Absent => Ok(Report::settled(spec.generation, Phase::Absent)),
                    Place::Here(found) => readdress(ctx, spec, &found),
                    // Something else that the move needs is missing.
                    Place::Elsewhere(_) => Err(refusal.during("moving the instance")),
                }
            }
            Err(refusal) => Err(refusal.during("moving the instance")),
        },
    }
}

/// Whether nothing will have the name of an absent instance. The engine copies under another name, and the copy may
/// have ended since the look.
fn is_gone(ctx: &Context, spec: &Spec) -> Result<bool, Error> {
    Ok(!is_operated(ctx, spec)? && matches!(found::look(ctx, &spec.tag)?, Place::Absent))
}

fn is_operated(ctx: &Context, spec: &Spec) -> Result<bool, Error> {
    let name = names::instance(ctx.installation, &spec.tag);
    ctx.api.is_operated(&name)?.during("listing the operations")
}

/// Gives an instance of this member its ids, addresses and ports here.
fn readdress(ctx: &Context, spec: &Spec, found: &Found) -> Result<Report, Error> {
    if found.is_up() {
        return Ok(Report::settled(spec.generation, found.phase()));
    }
    if let Some(again_ms) = id_range::compare(ctx, &spec.tag, found, &BTreeSet::new())? {
        return Err(Error::RetryLater(again_ms));
    }
    // Old forwards are of ports that another instance may get.
    let old = found.network(ctx.installation);
    if let Some(network) = old {
        forward::withdraw(ctx, network, &found.name)?;
    }
    owner_network::ensure(ctx, &spec.network)?;
    match ctx.api.readdress(&digest::of(spec))? {
        Ok(()) => {}
        Err(refusal) if refusal.is_busy() || refusal.is_address_taken() => {
            return Err(Error::RetryLater(MOVING_AGAIN_MS));
        }
        Err(refusal) => return Err(refusal.during("changing the addresses")),
    }
    forward::publish(ctx, spec)?;
    let new = names::network(ctx.installation, &spec.network.gateway);
    if let Some(network) = old.filter(|old| *old != new) {
        owner_network::remove(ctx, network)?;
    }
    Ok(Report::settled(spec.generation, Phase::Stopped(None)))
}
