//! Properties of the container of a virtual machine.
//!
//! The machine is a QEMU process; its supervision, limits, addresses and ports are those of the
//! container. The image runs QEMU and has a program that sets the open ports.
//! `plugins/flavors-standard/images/vm-base/README.md` documents the interface between image and
//! driver.

use crate::context::Context;
use crate::settings::Kvm;
use wharf_guest::{During, Error, ResourceType, Size};

/// Returns whether machines use hardware virtualisation on this node. Each machine tests it at its
/// start, so the running ones are asked. False if none runs.
pub fn have_kvm(ctx: &Context) -> Result<bool, Error> {
    if ctx.settings.kvm == Kvm::Off {
        return Ok(false);
    }
    let machines = ctx.api.machines()?.during("listing the machines")?;
    for machine in machines.iter().take(MOST_ASKED) {
        if let Ok(chosen) = ctx.api.acceleration(&machine.id)? {
            return Ok(chosen.trim() == "kvm");
        }
    }
    Ok(false)
}

/// One machine suffices, unless it ends at this moment.
const MOST_ASKED: usize = 3;

/// Disk space of the container beyond the machine's disk: the image, which some engines count, and the
/// disk file's metadata. The request of a creation has it too.
const DISK_OVERHEAD_GIB: u32 = 3;

/// The size of a limited disk, as its label has it.
pub fn disk_size_of(size: &Size, what: ResourceType) -> String {
    let overhead = match what {
        ResourceType::Vm => DISK_OVERHEAD_GIB,
        ResourceType::Container => 0,
    };
    format!("{}G", size.disk_size_gib + overhead)
}
