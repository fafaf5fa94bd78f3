//! A digest of a container's specification, stored as a label.
//!
//! Engines report a container's configuration in different forms, but return a label unchanged.

use wharf_guest::{Digest, Spec};

/// Digest of the parts of a specification that are fixed at creation. It excludes sizes, which
/// change, and files, which are removed after the first start.
pub fn of(spec: &Spec) -> String {
    let mut digest = Digest::new();
    let network = &spec.network;
    digest.list([&spec.hostname]);
    digest.list([
        &network.id,
        &network.subnet,
        &network.gateway,
        &network.address,
    ]);
    if let Some(public) = &spec.public_network {
        digest.list([&public.id, &public.subnet, &public.address]);
    }
    digest.composition(spec);
    digest.list(&spec.blueprint.command);
    // Containers without volumes keep the digest of earlier versions.
    if !spec.volumes.is_empty() {
        digest.list(spec.volumes.iter().map(|mount| {
            let end = if mount.read_only { ":ro" } else { "" };
            format!("{}:{}{end}", mount.volume, mount.path)
        }));
    }
    digest.text()
}
