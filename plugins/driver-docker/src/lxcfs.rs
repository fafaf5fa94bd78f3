//! The instance's own view of its size. The kernel shows the machine's CPUs, memory and uptime in
//! every container. lxcfs is a file system of the node whose files show those of the reader's
//! container instead.

use crate::api::model::label;
use crate::context::Context;
use crate::names;
use wharf_guest::{During, Error};

/// The directory of Debian's lxcfs. The mounts of containers are below it.
pub const DIRECTORY: &str = "/var/lib/lxcfs";

const OWN: &str = "own";
/// The label's value where the node's size is seen inside.
pub const MACHINE: &str = "machine";

/// Returns whether the newest instance that runs has its own view; none if there is no instance.
pub fn is_shown(ctx: &Context) -> Result<Option<bool>, Error> {
    let found = ctx.api.views()?.during("listing the instances")?;
    // Engines list the newest first.
    Ok(found
        .first()
        .and_then(|newest| label(&newest.labels, names::VIEW))
        .map(|view| view == OWN))
}
