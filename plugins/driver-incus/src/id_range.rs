//! The range of the node's user ids that an instance has for itself.
//!
//! Incus chooses a free range under a lock, and stores it after it has released the lock. Instances that are
//! created at one moment can therefore get one range, and their roots would be one user of the node. A move
//! keeps the range, which another instance of the new member may have.
//!
//! So an instance is compared with the others of its member before its first start there. Of two instances,
//! the later comparison sees both ranges.

use crate::context::Context;
use crate::found::Found;
use crate::metrics;
use std::collections::BTreeSet;
use wharf_guest::{During, Error, Tag, log};

/// Key: the engine chooses a range when its text changes.
const ISOLATED: &str = "security.idmap.isolated";
/// The texts of [`ISOLATED`], which mean one thing to the engine.
const TEXTS: [&str; 2] = ["true", "1"];
/// Key: the first id of the range.
const BASE: &str = "volatile.idmap.base";
/// The least time until the next comparison, ms.
const AGAIN_MS: u32 = 200;

/// The member's instances that run. A creation after this moment gets the range of none of them, since the
/// engine has stored their ranges.
///
/// # Errors
/// When the engine refuses to tell them.
pub fn running(ctx: &Context) -> Result<BTreeSet<String>, Error> {
    let metrics = ctx.api.metrics()?.during("reading the metrics")?;
    let running = metrics::running(&metrics).into_iter();
    Ok(running.map(str::to_owned).collect())
}

/// Compares the range of a stopped instance with those of the member's others, apart from `running`. If
/// another one has it, the engine chooses again, and the result is the time until the next comparison, in ms.
///
/// # Errors
/// When the engine refuses, and [`Error::RetryLater`] while it is at work.
pub fn compare(
    ctx: &Context,
    tag: &Tag,
    found: &Found,
    running: &BTreeSet<String>,
) -> Result<Option<u32>, Error> {
    let Some(other) = other_with_range(ctx, found, running)? else {
        return Ok(None);
    };
    log!(
        Warn,
        "{} got the range of ids of {other}; it gets another one before its start",
        found.name
    );
    let [usual, other] = TEXTS;
    let present = found.details.config.get(ISOLATED);
    let text = if present.is_some_and(|text| text == usual) {
        other
    } else {
        usual
    };
    let again_ms = again_ms(tag);
    match ctx.api.choose_ids(text)? {
        Ok(()) => Ok(Some(again_ms)),
        Err(refusal) if refusal.is_busy() || refusal.is_not_found() => {
            Err(Error::RetryLater(again_ms))
        }
        Err(refusal) => Err(refusal.during("choosing other ids")),
    }
}

fn other_with_range(
    ctx: &Context,
    found: &Found,
    running: &BTreeSet<String>,
) -> Result<Option<String>, Error> {
    let Some(own) = found.details.config.get(BASE) else {
        return Ok(None);
    };
    let disks = ctx.api.disks()?.during("listing the disks")?;
    let others = disks.into_iter().filter(|name| *name != found.name);
    for name in others.filter(|name| !running.contains(name)) {
        match ctx.api.listed(&name)? {
            // An instance whose disk is still being copied to this member is compared after the copy.
            Ok(other) if other.location == ctx.settings.member => {
                if other.config.get(BASE) == Some(own) {
                    return Ok(Some(name));
                }
            }
            Ok(_) => {}
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) => return Err(refusal.during("comparing the ids of instances")),
        }
    }
    Ok(None)
}

/// The time differs between instances. With equal times, two of them would choose at one moment repeatedly.
fn again_ms(tag: &Tag) -> u32 {
    let digits = tag.instance.len().saturating_sub(3);
    let random = tag.instance.get(digits..).unwrap_or_default();
    AGAIN_MS + u32::from_str_radix(random, 16).unwrap_or_default() / 4
}
