//! A digest of an instance's specification, stored in its configuration.

use wharf_guest::{Digest, Spec};

/// Digest of the parts of a specification that are fixed at creation. It excludes sizes, which
/// change, and files, which are removed after the first start.
pub fn of(spec: &Spec) -> String {
    let mut digest = Digest::new();
    let network = &spec.network;
    digest.list([&spec.hostname]);
    digest.list([&network.id, &network.subnet, &network.address]);
    digest.composition(spec);
    digest.text()
}
