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

/// Label: whether the container shows its own CPUs and memory (`own`), or the machine's (`machine`).
pub const VIEW: &str = "io.wharf.view";

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

/// The name of a network with this [`own_name`].
#[must_use]
pub fn network(own_name: &str) -> String {
    format!("wharf-{own_name}")
}

/// The name of a network's bridge interface on the node. Node rules match its prefix. Interfaces have
/// at most 15 characters.
#[must_use]
pub fn bridge(own_name: &str) -> String {
    format!("whf{own_name}")
}

/// The part of a name that distinguishes the networks of a machine. An owner's network is named
/// after its addresses and its installation. An engine may keep an unused network and refuse another
/// with its addresses; dockerd 20.10 sometimes does. So the next owner of the addresses must find it. Two engines on one machine would share a bridge of one name.
#[must_use]
pub fn own_name(installation: &str, network: &Network) -> String {
    if network.id.starts_with(PUBLIC_ID) {
        return network.id.clone();
    }
    let end: Vec<char> = installation
        .chars()
        .rev()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let end = end.iter().take(INSTALLATION_END).rev();
    format!("n{}{}", digits(&network.subnet, 4), end.collect::<String>())
}

/// Characters of the installation's id in a name.
const INSTALLATION_END: usize = 3;

/// The part of a name that earlier versions gave to an owner's network.
#[must_use]
pub fn earlier_name(network: &Network) -> String {
    format!("n{}", digits(&network.subnet, 5))
}

/// The first numbers of an address range, in hexadecimal digits.
fn digits(subnet: &str, count: usize) -> String {
    let numbers = subnet.split(['.', '/']).take(count);
    let digits = numbers.map(|number| format!("{:02x}", number.parse::<u8>().unwrap_or_default()));
    digits.collect()
}

/// The labels of a container on the owner's network with this [`own_name`].
#[must_use]
pub fn container_labels(
    installation: &str,
    spec: &Spec,
    network: &str,
    digest: &str,
) -> BTreeMap<&'static str, String> {
    let tag = &spec.tag;
    let mut labels = BTreeMap::from([
        (INSTALLATION, installation.to_owned()),
        (INSTANCE, tag.instance.clone()),
        (INCARNATION, tag.incarnation.to_string()),
        (OWNER, spec.network.id.clone()),
        (NETWORK, network.to_owned()),
        (SPEC, digest.to_owned()),
    ]);
    let public = spec.public_network.iter();
    labels.extend(public.map(|network| (PUBLIC_NETWORK, network.id.clone())));
    labels
}
