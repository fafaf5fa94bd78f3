//! The usage of an instance.

use crate::context::Context;
use crate::{metrics, names};
use wharf_guest::{During, Error, GIB, Tag, Usage};

/// An instance that runs, in the engine's numbers.
const RUNNING: u16 = 103;

/// See the `driver` interface. The engine gives no time of the sample: the host takes its own.
///
/// # Errors
/// See the `driver` interface; [`Error::Conflict`] if the instance does not run.
pub fn stats(ctx: &Context, tag: &Tag, _: bool) -> Result<Usage, Error> {
    let name = names::instance(ctx.installation, tag);
    let state = match ctx.api.state()? {
        Ok(state) => state,
        Err(refusal) if refusal.is_not_found() => return Err(Error::NotFound),
        Err(refusal) => return Err(refusal.during("reading usage")),
    };
    if state.status_code != RUNNING {
        return Err(Error::Conflict("the instance does not run".into()));
    }
    let disk = state.disk.get("root").copied().unwrap_or_default();
    Ok(Usage {
        cpu_ns: positive(state.cpu.usage),
        at_ns: 0,
        mem_used_bytes: used(ctx, &name)?.unwrap_or(positive(state.memory.usage)),
        disk_used_bytes: positive(disk.usage),
    })
}

/// Memory in use, without the page cache; none if the metrics do not have the instance yet.
fn used(ctx: &Context, name: &str) -> Result<Option<u64>, Error> {
    let metrics = ctx.api.metrics()?.during("reading the metrics")?;
    Ok(metrics::memory_used(&metrics, name))
}

/// Checks that the memory in use fits into a size. On cgroups v2, the kernel would enforce a limit below
/// the usage by ending processes.
///
/// # Errors
/// [`Error::Invalid`] if it does not.
pub fn memory_suffices(ctx: &Context, tag: &Tag, mem_gib: u32) -> Result<(), Error> {
    let name = names::instance(ctx.installation, tag);
    let needed = used(ctx, &name)?.unwrap_or_default();
    if needed <= u64::from(mem_gib) * GIB {
        return Ok(());
    }
    Err(Error::memory_in_use(needed))
}

fn positive(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
