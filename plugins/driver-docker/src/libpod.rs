//! The size of a container on a Podman before 5, which can change it only through its own interface.

use crate::api::model::Limits;
use crate::context::Context;
use crate::found::Found;
use crate::stats;
use wharf_guest::Error;

/// Resizes a running container. Podman keeps reporting the size of the creation, and restores it when
/// the container stops.
///
/// # Errors
/// [`Error::Invalid`] if the usage of memory exceeds the new size; then nothing has changed.
pub fn resize(ctx: &Context, found: &Found, limits: &Limits) -> Result<(), Error> {
    let memory = stats::sample(ctx, &found.name)?.memory_stats;
    let wanted = u64::try_from(limits.memory).unwrap_or(0);
    let is_short = memory.usage > wanted;
    if is_short {
        let needed = stats::needed(ctx, found, &memory)?;
        if needed > wanted {
            return Err(Error::memory_in_use(needed));
        }
    }
    match ctx.api.resize_podman(&found.name)? {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_no_container() => Err(Error::NotFound),
        Err(refusal) if refusal.is_not_found() => Err(Error::Unsupported(
            "this engine cannot change the size of a container".into(),
        )),
        Err(_) if is_short || wanted < memory.limit => Err(Error::more_memory_in_use()),
        Err(refusal) => Err(refusal.during("changing the size")),
    }
}
