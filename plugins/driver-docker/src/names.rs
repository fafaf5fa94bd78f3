//! Names and labels of Wharf's objects on the engine.
//!
//! The labels are the driver's only memory: the owner of an object, the creation of the instance,
//! and the specification.

use std::collections::BTreeMap;
use wharf_guest::{Network, Spec, Tag};

/// Label: the installation that owns the object.
pub const INSTALLATION: &str = "io.wharf.installation";
/// Label: the instance's UUID.
pub const INSTANCE: &str = "io.wharf.instance";
/// Label: the incarnation of the instance.
pub const INCARNATION: &str = "io.wharf.incarnation";
/// Label: the id of the owner's network, on the network and on its containers.
pub const OWNER: &str = "io.wharf.owner";
/// Label: the owner's network of the container, running or not.
pub const NETWORK: &str = "io.wharf.network";
/// Label: the public network of the container, if it has one.
pub const PUBLIC_NETWORK: &str = "io.wharf.public-network";
/// Label: digest of the container's specification.
pub const SPEC: &str = "io.wharf.spec";
/// Label: the size of a limited disk. The limit itself also includes the image, and Podman does not
/// report it.
pub const DISK: &str = "io.wharf.disk";

/// Label: the container is the replacement of one whose disk had this limit. It counts as having
/// run, though the engine has never started it.
pub const GROWN_FROM: &str = "io.wharf.grown-from";

/// Label: the mark of the engine's store, on the installation's volume.
pub const MARK: &str = "io.wharf.mark";

/// The first character of ids of public networks. Some engines route outgoing traffic over the
/// network whose name sorts first; this makes it the public one.
pub const PUBLIC_ID: char = '0';

/// The name of an instance's container.
#[must_use]
pub fn container(tag: &Tag) -> String {
    format!("wharf-{}", tag.instance)
}

/// The name of a replacement container during the copy.
#[must_use]
pub fn part(tag: &Tag) -> String {
    format!("{}-part", container(tag))
}

/// The name of a replacement container after the copy.
#[must_use]
pub fn whole(tag: &Tag) -> String {
    format!("{}-whole", container(tag))
}

/// The name of the volume that marks the engine's store.
#[must_use]
pub fn mark_volume(installation: &str) -> String {
    format!("wharf-{installation}")
}

/// The name of a network.
#[must_use]
pub fn network(network: &Network) -> String {
    format!("wharf-{}", own_name(network))
}

/// The name of a network's bridge interface on the node. Node rules match its prefix.
#[must_use]
pub fn bridge(network: &Network) -> String {
    format!("whf{}", own_name(network))
}

/// The part of a name that distinguishes the networks of an installation. An owner's network is
/// named after its addresses. An engine may keep an unused network and refuse another with its
/// addresses (dockerd 20.10 sometimes does), so the next owner of the addresses must find it.
#[must_use]
pub fn own_name(network: &Network) -> String {
    if network.id.starts_with(PUBLIC_ID) {
        return network.id.clone();
    }
    let numbers = network.subnet.split(['.', '/']);
    let digits = numbers.map(|number| format!("{:02x}", number.parse::<u8>().unwrap_or_default()));
    format!("n{}", digits.collect::<String>())
}

/// The labels of a container.
#[must_use]
pub fn container_labels(
    installation: &str,
    spec: &Spec,
    digest: &str,
) -> BTreeMap<&'static str, String> {
    let tag = &spec.tag;
    let mut labels = BTreeMap::from([
        (INSTALLATION, installation.to_owned()),
        (INSTANCE, tag.instance.clone()),
        (INCARNATION, tag.incarnation.to_string()),
        (OWNER, spec.network.id.clone()),
        (NETWORK, own_name(&spec.network)),
        (SPEC, digest.to_owned()),
    ]);
    let public = spec.public_network.iter();
    labels.extend(public.map(|network| (PUBLIC_NETWORK, network.id.clone())));
    labels
}
