//! A digest of an instance's specification, stored in its configuration.

use wharf_guest::{Digest, Spec};

/// Digest of the parts of a specification that are fixed at creation. It excludes sizes, which
/// change, and files, which are removed after the first start.
#[must_use]
pub fn of(spec: &Spec) -> String {
    let mut digest = Digest::new();
    let network = &spec.network;
    digest.list([&spec.hostname]);
    digest.list([&network.id, &network.subnet, &network.address]);
    digest.list(spec.published.iter().map(|p| {
        // Digests of earlier versions know public ports only.
        let end = if p.private { ":private" } else { "" };
        format!("{}:{}{end}", p.node_port, p.instance_port)
    }));
    digest.list(&spec.gpu_devices);
    digest.list(
        spec.blueprint
            .images
            .iter()
            .map(|i| format!("{}={}", i.engine_kind, i.reference)),
    );
    digest.list(
        spec.blueprint
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    digest.text()
}
