//! Properties of the container of a virtual machine.
//!
//! The machine is a QEMU process; its supervision, limits, addresses and ports are those of the
//! container. The image runs QEMU and has the program [`PROGRAM`].
//! `plugins/flavors-standard/images/vm-base/README.md` documents the interface between image and
//! driver.

use crate::context::Context;
use crate::names;
use crate::settings::Kvm;
use crate::units::GIB;
use serde::Serialize;
use std::collections::BTreeMap;
use wharf_guest::{Error, ResourceType, Size};

/// A program in every image that runs a virtual machine. `PROGRAM set-ports PORT…` forwards exactly
/// these ports to the machine.
pub const PROGRAM: &str = "/usr/local/sbin/wharf-vm";

/// The file with a machine's accelerator: `kvm` or `tcg`.
const ACCELERATION: &str = "/var/lib/wharf/machine/acceleration";

/// Returns whether machines use hardware virtualisation on this node. Each machine tests it at its
/// start, so the running ones are asked. False if none runs.
///
/// # Errors
/// When the engine does not answer.
pub fn have_kvm(ctx: &Context) -> Result<bool, Error> {
    if ctx.settings.kvm == Kvm::Off {
        return Ok(false);
    }
    let owner = (names::INSTALLATION, ctx.installation);
    let machines = ctx.api.running_with(owner, names::PUBLIC_NETWORK)?;
    let machines = machines.map_err(|refusal| refusal.during("listing the machines"))?;
    for machine in machines.iter().take(MOST_ASKED) {
        if let Ok(chosen) = ctx.api.file(&machine.id, ACCELERATION)? {
            return Ok(chosen.trim() == "kvm");
        }
    }
    Ok(false)
}

/// One machine suffices, unless it ends at this moment.
const MOST_ASKED: usize = 3;

/// Memory beyond the machine's RAM, for QEMU and its translated code.
const MEMORY_OVERHEAD: u64 = 384 << 20;
const _: () = assert!(MEMORY_OVERHEAD < GIB, "a part of one GiB");

/// Disk space beyond the machine's disk: the image, which some engines count, and the disk file's
/// metadata.
const DISK_OVERHEAD_GIB: u32 = 3;

/// The container's memory beyond the machine's RAM, in bytes.
#[must_use]
pub fn memory_overhead(what: ResourceType) -> u64 {
    match what {
        ResourceType::Vm => MEMORY_OVERHEAD,
        ResourceType::Container => 0,
    }
}

/// The container's disk beyond the machine's, in GiB.
#[must_use]
pub fn disk_overhead_gib(what: ResourceType) -> u32 {
    match what {
        ResourceType::Vm => DISK_OVERHEAD_GIB,
        ResourceType::Container => 0,
    }
}

/// Users are root in a container, but must not forge addresses on their network. The process around
/// a machine needs no capability, so an escape from QEMU gains none.
#[must_use]
pub fn cap_drop(what: ResourceType) -> [&'static str; 1] {
    match what {
        ResourceType::Vm => ["ALL"],
        ResourceType::Container => ["NET_RAW"],
    }
}

/// No process around a machine may gain privileges; in a container, `sudo` must.
#[must_use]
pub fn security_opt(what: ResourceType) -> Vec<&'static str> {
    match what {
        ResourceType::Vm => vec!["no-new-privileges"],
        ResourceType::Container => Vec::new(),
    }
}

/// Allows QEMU to listen on port 22 without root. In a container, `ping` works without the right to
/// forge packets: the kernel sends echo requests for all groups of a user namespace.
#[must_use]
pub fn sysctls(what: ResourceType) -> BTreeMap<&'static str, &'static str> {
    match what {
        ResourceType::Vm => [("net.ipv4.ip_unprivileged_port_start", "0")].into(),
        ResourceType::Container => [("net.ipv4.ping_group_range", "0 65535")].into(),
    }
}

/// Shared memory of a container, in bytes: half of its RAM, as on a machine. The engines' default of
/// 64 MiB ends programs that share data between processes.
#[must_use]
pub fn shm_size(size: &Size, what: ResourceType) -> Option<u64> {
    match what {
        ResourceType::Vm => None,
        ResourceType::Container => Some(u64::from(size.mem_gib) * GIB / 2),
    }
}

/// A device of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Device {
    /// The path on the node.
    pub path_on_host: &'static str,
    /// The path in the container.
    pub path_in_container: &'static str,
    /// The permissions: `r`, `w`, and `m` for mknod.
    pub cgroup_permissions: &'static str,
}

/// The image tests whether the device works: it may exist and fail.
#[must_use]
pub fn devices(what: ResourceType, kvm: bool) -> Vec<Device> {
    let device = Device {
        path_on_host: "/dev/kvm",
        path_in_container: "/dev/kvm",
        cgroup_permissions: "rw",
    };
    match what {
        ResourceType::Vm if kvm => vec![device],
        _ => Vec::new(),
    }
}
