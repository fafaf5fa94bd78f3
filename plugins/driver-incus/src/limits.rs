//! The proof that the pool holds the sizes of disks and volumes, which are alike. The interface writes files of
//! instances alone, so an instance without an image is written, which never starts.

use crate::api::Outcome;
use crate::context::Context;
use crate::volumes::{LIMITING, pool};
use wharf_guest::{During, Error, Limits};

/// The length of a part, in bytes. Two exceed the disk, and one does not.
const PART: u64 = 10 << 20;
/// Two parts. Inconsistent quotas of btrfs count no written block, and still refuse a single part that is too large.
const PARTS: [&str; 2] = ["first", "second"];
/// Delay while the engine is at work, ms.
const BUSY_AGAIN_MS: u32 = 1_000;

/// See the `volumes` interface.
pub fn prove(ctx: &Context) -> Result<Limits, Error> {
    if !LIMITING.contains(&pool(ctx)?.driver.as_str()) {
        return Err(Error::Unsupported(
            "proofs: the pool limits no disks".to_owned(),
        ));
    }
    // The creation of a disk would enable quotas that are off, without the limits of those that exist.
    let marked = ctx.api.marked_volume_usage()?;
    if marked.is_ok_and(|marked| marked.usage.is_none()) {
        let why = "the pool counts no usage: its quotas are off, and limits of its disks are lost"
            .to_owned();
        return Ok(Limits::Broken(why));
    }
    remove(ctx)?;
    let written = write(ctx);
    remove(ctx)?;
    match written? {
        [PART, PART] => {
            let why = "20 MiB were written on a disk of 16 MiB".to_owned();
            Ok(Limits::Broken(why))
        }
        [PART, _] => Ok(Limits::Held),
        _ => Err(Error::Other(
            "the pool has no room for a proof of its limits".to_owned(),
        )),
    }
}

/// Returns the lengths of the parts.
fn write(ctx: &Context) -> Result<[u64; 2], Error> {
    let [first, second] = PARTS;
    make(ctx, false, "making the instance of a proof")?;
    ctx.api.write_probe(first)?;
    // The engine makes a snapshot for the copy, which writes all that is in memory.
    make(ctx, true, "copying the instance of a proof")?;
    ctx.api.write_probe(second)?;
    Ok([ctx.api.probe_length(first)?, ctx.api.probe_length(second)?])
}

/// Makes an instance. An interrupted call may be making it still, before any list shows it.
fn make(ctx: &Context, is_copy: bool, step: &str) -> Result<(), Error> {
    match ctx.api.make_probe(is_copy)? {
        Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        made => done(made.during(step)?),
    }
}

/// Removes both instances, also those of an interrupted call.
fn remove(ctx: &Context) -> Result<(), Error> {
    for name in ctx.api.probes()? {
        match ctx.api.remove_probe(&name)? {
            Ok(outcome) => done(outcome)?,
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) if refusal.is_busy() => return Err(Error::RetryLater(BUSY_AGAIN_MS)),
            Err(refusal) => return Err(refusal.during("removing the instance of a proof")),
        }
    }
    Ok(())
}

fn done(outcome: Outcome) -> Result<(), Error> {
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Unknown => Err(Error::RetryLater(BUSY_AGAIN_MS)),
    }
}
