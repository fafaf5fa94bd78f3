//! `base`: a clean system.

use crate::entry::Entry;

/// The default flavor. It is the only one for virtual machines.
pub const BASE: Entry = Entry {
    name: "base",
    description: "A clean system with SSH: Ubuntu 24.04 on virtual machines, a slim Python environment on containers.",
    vm: true,
    ssh: true,
    web: None,
    s3_prefill: false,
    ai: false,
    gpu_aware: false,
};
