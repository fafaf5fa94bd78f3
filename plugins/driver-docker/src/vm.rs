//! What is different about the container of a virtual machine.
//!
//! The machine is a QEMU process: its supervision, limits, addresses and ports are the container's.
//! The image runs it and has the program [`PROGRAM`]; what of it is relied on is in
//! `plugins/flavors-standard/images/vm-base/README.md`.

use crate::context::Context;
use crate::create_body::{Device, GIB};
use crate::names;
use crate::settings::Kvm;
use std::collections::BTreeMap;
use wharf_guest::{Error, ResourceType};

/// In every image that runs a virtual machine: `PROGRAM set-ports PORT…` makes exactly these ports
/// lead into the machine.
pub const PROGRAM: &str = "/usr/local/sbin/wharf-vm";

/// Where it says what a machine runs on: `kvm` or `tcg`.
const ACCELERATION: &str = "/var/lib/wharf/machine/acceleration";

/// Whether machines use hardware virtualisation here: each tries it at its start, so those that run
/// are asked. False while there are none.
///
/// # Errors
/// When the engine gives no answer.
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

/// One knows, unless it ends just now.
const MOST_ASKED: usize = 3;

/// RAM beyond the machine's own: QEMU itself, and what it keeps of translated code.
const MEMORY_OVERHEAD: u64 = 384 << 20;
const _: () = assert!(MEMORY_OVERHEAD < GIB, "a part of one GiB");

/// Disk beyond the machine's own: the image, which engines count, and the disk file's tables.
const DISK_OVERHEAD_GIB: u32 = 3;

/// What the container has beyond the machine's RAM, in bytes.
#[must_use]
pub fn memory_overhead(what: ResourceType) -> u64 {
    match what {
        ResourceType::Vm => MEMORY_OVERHEAD,
        ResourceType::Container => 0,
    }
}

/// What the container has beyond the machine's disk, in GiB.
#[must_use]
pub fn disk_overhead_gib(what: ResourceType) -> u32 {
    match what {
        ResourceType::Vm => DISK_OVERHEAD_GIB,
        ResourceType::Container => 0,
    }
}

/// A container's users have root inside, but must not forge addresses on their network. Nobody
/// needs any right around a machine: who breaks out of QEMU finds none.
#[must_use]
pub fn cap_drop(what: ResourceType) -> [&'static str; 1] {
    match what {
        ResourceType::Vm => ["ALL"],
        ResourceType::Container => ["NET_RAW"],
    }
}

/// Nothing around a machine gains rights; in a container `sudo` does.
#[must_use]
pub fn security_opt(what: ResourceType) -> Vec<&'static str> {
    match what {
        ResourceType::Vm => vec!["no-new-privileges"],
        ResourceType::Container => Vec::new(),
    }
}

/// QEMU listens on port 22 without being root.
#[must_use]
pub fn sysctls(what: ResourceType) -> BTreeMap<&'static str, &'static str> {
    match what {
        ResourceType::Vm => [("net.ipv4.ip_unprivileged_port_start", "0")].into(),
        ResourceType::Container => BTreeMap::new(),
    }
}

/// Whether the device is of any use is for the image to find out: it may be there and not work.
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
