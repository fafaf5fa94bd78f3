//! The mark of the engine's store: a label of a volume that holds no data. Volumes are in the data
//! directory of the engine, as containers are, so an empty one has no mark. Docker and Podman both keep
//! the labels of a volume that exists when it is created again.

use crate::context::Context;
use crate::names;
use wharf_guest::{During, Error};

/// See the `identity` interface.
pub fn identify(ctx: &Context) -> Result<Option<String>, Error> {
    match ctx.api.store()? {
        Ok(volume) => Ok(volume.labels.unwrap_or_default().remove(names::MARK)),
        Err(refusal) if refusal.is_not_found() => Ok(None),
        Err(refusal) => Err(refusal.during("reading the mark of the store")),
    }
}

/// See the `identity` interface.
pub fn mark(ctx: &Context) -> Result<(), Error> {
    ctx.api.mark_store()?.during("marking the store")
}
