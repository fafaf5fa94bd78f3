//! The mark of the store: the configuration of a volume that holds no data, in the member's own pool. A
//! pool whose disk is not mounted has no such volume.

use crate::context::Context;
use crate::names;
use wharf_guest::Error;

/// See the `identity` interface. The configuration is in the cluster's database, and the usage shows
/// that the pool has the volume.
pub fn identify(ctx: &Context) -> Result<Option<String>, Error> {
    let mut volume = match ctx.api.marked_volume()? {
        Ok(volume) => volume,
        Err(refusal) if refusal.is_not_found() => return Ok(None),
        Err(refusal) => return Err(refusal.during("reading the mark of the store")),
    };
    match ctx.api.marked_volume_usage()? {
        Ok(state) if state.usage.is_none() => Ok(None),
        Ok(_) => Ok(volume.config.remove(names::MARK)),
        Err(refusal) => Err(refusal.during("reading the volume with the mark of the store")),
    }
}

/// See the `identity` interface.
pub fn mark(ctx: &Context) -> Result<(), Error> {
    match ctx.api.write_mark()? {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_name_taken() => Ok(()),
        Err(refusal) => Err(refusal.during("marking the store")),
    }
}
