//! Names and labels of Wharf's objects on the engine, which `requests.toml` gives them.
//!
//! The labels are the driver's only memory: the owner of an object, the creation of the instance,
//! and the specification.

use wharf_guest::Tag;

/// Label: the installation that owns the object.
pub const INSTALLATION: &str = "io.wharf.installation";
/// Label: the instance's UUID.
pub const INSTANCE: &str = "io.wharf.instance";
/// Label: the incarnation of the instance.
pub const INCARNATION: &str = "io.wharf.incarnation";
/// Label: the id of the owner's network, on the network and on its containers.
pub const OWNER: &str = "io.wharf.owner";
/// Label: digest of the container's specification.
pub const SPEC: &str = "io.wharf.spec";
/// Label: the size of a limited disk. The limit itself also includes the image, and Podman does not
/// report it.
pub const DISK: &str = "io.wharf.disk";

/// Label: whether the container shows its own CPUs and memory (`own`), or the machine's (`machine`).
pub const VIEW: &str = "io.wharf.view";

/// Label: the container is the replacement of one whose disk had this limit, was restored, or is on another node. It counts as
/// having run, though the engine has never started it. A clone has [`NONE`].
pub const GROWN_FROM: &str = "io.wharf.grown-from";
/// The value of a label in place of that of the container's image.
pub const NONE: &str = "none";

/// The names of snapshots begin with it, and have a tag.
pub const SNAPSHOT: &str = "localhost/wharf-snapshot/";

/// Label: the mark of the engine's store, on the installation's volume.
pub const MARK: &str = "io.wharf.mark";

/// The first character of ids of public networks. Some engines route outgoing traffic over the
/// network whose name sorts first; this makes it the public one.
pub const PUBLIC_ID: char = '0';

/// The name of a snapshot.
pub fn snapshot(id: &str) -> String {
    format!("{SNAPSHOT}{id}:1")
}

/// The name of an instance's container.
pub fn container(tag: &Tag) -> String {
    format!("wharf-{}", tag.instance)
}

/// The name of a replacement container during the copy.
pub fn part(tag: &Tag) -> String {
    format!("{}-part", container(tag))
}

/// The name of a replacement container after the copy.
pub fn whole(tag: &Tag) -> String {
    format!("{}-whole", container(tag))
}
