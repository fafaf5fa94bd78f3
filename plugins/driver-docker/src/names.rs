//! What Wharf's objects are called and labelled on the engine.
//!
//! The labels are the driver's only memory: who made an object, for which creation of which
//! instance, and from what specification.

use std::collections::BTreeMap;
use wharf_guest::{Network, Spec, Tag};

/// Label: the installation that owns the object.
pub const INSTALLATION: &str = "io.wharf.installation";
/// Label: the instance's UUID.
pub const INSTANCE: &str = "io.wharf.instance";
/// Label: which creation of the instance this is.
pub const INCARNATION: &str = "io.wharf.incarnation";
/// Label: the id of the owner's network, of the network and of what is on it.
pub const OWNER: &str = "io.wharf.owner";
/// Label: the owner's network that the container belongs to, running or not.
pub const NETWORK: &str = "io.wharf.network";
/// Label: the public network that it belongs to besides, if it does.
pub const PUBLIC_NETWORK: &str = "io.wharf.public-network";
/// Label: digest of the specification the container was made from.
pub const SPEC: &str = "io.wharf.spec";
/// Label: the size of its disk, if that has a limit; the limit counts the image besides. Podman does
/// not tell it otherwise.
pub const DISK: &str = "io.wharf.disk";

/// Label: the container was made to take over another's content, from a disk with this limit. It has
/// run before in a way, though the engine has never started it.
pub const GROWN_FROM: &str = "io.wharf.grown-from";

/// How the ids of public networks begin. Engines that take the network that comes first by name for
/// the way out take this one.
pub const PUBLIC_ID: char = '0';

/// The container of an instance.
#[must_use]
pub fn container(tag: &Tag) -> String {
    format!("wharf-{}", tag.instance)
}

/// A container that is to replace it, while content is put in.
#[must_use]
pub fn part(tag: &Tag) -> String {
    format!("{}-part", container(tag))
}

/// The same once it has all of it.
#[must_use]
pub fn whole(tag: &Tag) -> String {
    format!("{}-whole", container(tag))
}

/// A network.
#[must_use]
pub fn network(network: &Network) -> String {
    format!("wharf-{}", own_name(network))
}

/// The bridge interface of a network on the node; node rules match its beginning.
#[must_use]
pub fn bridge(network: &Network) -> String {
    format!("whf{}", own_name(network))
}

/// What tells a network from others of its installation. An owner's is named after its addresses: an
/// engine may keep a network that nobody is on any more (dockerd 20.10 at times takes one for used for
/// ever) and makes no other with the same addresses, so whoever has them next must find it there.
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
