//! The instance's own view of its size. The kernel shows the machine's CPUs, memory and uptime in
//! every container. lxcfs is a file system of the node whose files show those of the reader's
//! container instead.

use crate::api::model::label;
use crate::context::Context;
use crate::names;
use serde::Serialize;
use serde_json::{Value, json};
use wharf_guest::{Error, ResourceType};

/// The directory of Debian's lxcfs. The engine gets paths below it.
pub const DIRECTORY: &str = "/var/lib/lxcfs";

/// The files, at the paths of the kernel's own ones.
const FILES: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
];

/// A file of the node, shown in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Mount {
    r#type: &'static str,
    source: String,
    target: &'static str,
    read_only: bool,
}

impl Mount {
    /// The mount for Podman's own interface.
    #[must_use]
    pub fn libpod(&self) -> Value {
        json!({
            "type": self.r#type,
            "source": self.source,
            "destination": self.target,
            "options": ["ro"],
        })
    }
}

/// The mounts of a container. A virtual machine has a kernel of its own.
#[must_use]
pub fn mounts(what: ResourceType, own_view: bool) -> Vec<Mount> {
    if what == ResourceType::Vm || !own_view {
        return Vec::new();
    }
    FILES
        .map(|target| Mount {
            r#type: "bind",
            source: format!("{DIRECTORY}{target}"),
            target,
            read_only: true,
        })
        .into()
}

/// Returns the label's value for a container.
#[must_use]
pub fn label_of(own_view: bool) -> &'static str {
    if own_view { OWN } else { MACHINE }
}

const OWN: &str = "own";
/// The label's value where the node's size is seen inside.
pub const MACHINE: &str = "machine";

/// Returns whether the newest instance that runs has its own view; none if there is no instance.
///
/// # Errors
/// When the engine does not answer.
pub fn is_shown(ctx: &Context) -> Result<Option<bool>, Error> {
    let owner = (names::INSTALLATION, ctx.installation);
    let found = ctx.api.running_with(owner, names::VIEW)?;
    let found = found.map_err(|refusal| refusal.during("listing the instances"))?;
    // Engines list the newest first.
    Ok(found
        .first()
        .and_then(|newest| label(&newest.labels, names::VIEW))
        .map(|view| view == OWN))
}
