//! The volume: a disk with a name of its own on one node. It outlives the instances that have it.

use super::capacity::{CpuTier, Size};
use super::ids::{NodeId, UserId, VolumeId};
use super::money::{Rate, Rates};
use super::name::Name;
use super::state::InstanceState;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The most volumes of one instance.
pub const MAX_MOUNTS: usize = 8;

/// The database row of a volume. It is the volume's claim too: it stays until the node was seen without the
/// volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub id: VolumeId,
    /// Place in the order of creation of all volumes.
    pub seq: u64,
    pub owner: UserId,
    /// Name, unique among the owner's volumes.
    pub name: Name,
    pub size_gib: u32,
    /// Class of CPU that the node offers, which has the rate.
    pub cpu_tier: CpuTier,
    pub created_at: Timestamp,
    /// Rate of a GiB at the time of creation; it never changes.
    pub rate: Rate,
    /// Node that has the volume, for good.
    pub node: NodeId,
    /// The user deleted the volume.
    pub deleted: bool,
    /// The node was seen to have the volume.
    pub made: bool,
    /// The volume is of no use any more, for this reason.
    pub failure: Option<VolumeFailure>,
    /// Number of events so far, which is the index of the next event.
    pub events: u32,
    /// Number of ledger entries so far, which is the index of the next entry.
    pub ledger_entries: u32,
    /// Time of the last event by Wharf's own clock.
    pub last_event_at: Timestamp,
    /// Whether the last ledger entry bills the volume.
    pub billed: bool,
}

/// Why a volume is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeFailure {
    /// The node could not make it.
    NotMade,
    /// The node had it, and has it no more.
    Missing,
    /// The node has failed for good.
    Lost,
}

impl VolumeFailure {
    /// The words for the owner.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotMade => {
                "The host could not make the volume. Delete it and create it again; if that fails too, ask \
                 the operator, whose log has the reason."
            }
            Self::Missing => {
                "The host has the volume no more. Its data is lost unless the operator brings it back."
            }
            Self::Lost => "The host has failed for good, and the data of the volume with it.",
        }
    }
}

/// The state of a volume as its user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VolumeStatus {
    Creating,
    Ready,
    Error,
    /// The user deleted the volume.
    Deleting,
}

impl VolumeStatus {
    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Deleting => "deleting",
        }
    }

    /// Whether the volume is billed.
    pub fn is_billed(self) -> bool {
        matches!(self, Self::Creating | Self::Ready)
    }

    /// The state of an instance that is billed as the volume is: for its disk alone, or not at all. Events
    /// and ledgers of volumes have the form of those of instances.
    pub fn billed_as(self) -> InstanceState {
        match self {
            Self::Creating | Self::Ready => InstanceState::Exited,
            Self::Error => InstanceState::Error,
            Self::Deleting => InstanceState::Deleted,
        }
    }
}

impl Volume {
    /// Derives the state from the intent and the observations.
    pub fn status(&self) -> VolumeStatus {
        match (self.deleted, self.failure, self.made) {
            (true, ..) => VolumeStatus::Deleting,
            (_, Some(_), _) => VolumeStatus::Error,
            (_, None, true) => VolumeStatus::Ready,
            (_, None, false) => VolumeStatus::Creating,
        }
    }

    /// Whether the node has not been seen to follow the row.
    pub fn is_pending(&self) -> bool {
        self.deleted || self.status() == VolumeStatus::Creating
    }

    /// Whether the volume was lost with its node. It claims nothing then.
    pub fn is_lost(&self) -> bool {
        self.failure == Some(VolumeFailure::Lost)
    }

    /// The size as an instance with this disk alone would have it.
    pub fn size(&self) -> Size {
        disk(self.size_gib)
    }

    /// The rates in the form of the ledger.
    pub fn rates(&self) -> Rates {
        Rates {
            disk: self.rate,
            ..Rates::default()
        }
    }
}

/// A size with a disk alone. No instance has it, so that it tells volumes from instances.
pub fn disk(size_gib: u32) -> Size {
    Size {
        disk_size_gib: size_gib,
        ..Size::default()
    }
}

/// A valid directory for a volume in an instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MountPath(String);

/// Directories of the system, which its programs need as the image has them.
const SYSTEM: [&str; 14] = [
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin",
    "sys", "usr",
];

/// Directories within which a volume may be, though not in their place.
const PARENTS: [&str; 2] = ["/opt", "/tmp"];

/// The sockets of the screen.
const X11: &str = ".X11-unix";

impl MountPath {
    /// The longest path in bytes.
    const MAX: usize = 255;

    /// Parses an absolute path in its normal form. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "must be an absolute path of letters, digits and the characters . _ + -, such as /data/genome";
        let Some(relative) = text.strip_prefix('/').filter(|_| text.len() <= Self::MAX) else {
            return Err(FORM);
        };
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
        let parts: Vec<&str> = relative.split('/').collect();
        let right = |part: &&str| {
            !part.is_empty() && !matches!(*part, "." | "..") && part.bytes().all(is_plain)
        };
        if !parts.iter().all(right) {
            return Err(FORM);
        }
        match parts.as_slice() {
            [first, ..] if SYSTEM.contains(first) || *first == "var" => {
                Err("must not be in a directory of the system")
            }
            ["tmp", second, ..] if *second == X11 => {
                Err("must not be in a directory of the system")
            }
            _ if PARENTS.contains(&text) => Err("must be a directory within this one"),
            // Engines make what is missing of a path, and root would own the home.
            ["home", ..] => Err("must not be in /home"),
            _ => Ok(Self(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether one path is within the other, or they are equal.
    pub fn overlaps(&self, other: &Self) -> bool {
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        within(&self.0, &other.0) || within(&other.0, &self.0)
    }
}

/// A volume that a request attaches to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRequest {
    /// UUID or name of the volume.
    pub volume: String,
    pub path: MountPath,
    /// Absent if the request does not say it.
    pub read_only: Option<bool>,
}

/// Checks that no two paths are within each other.
pub fn check_paths<'a>(paths: impl Iterator<Item = &'a MountPath>) -> Result<(), String> {
    let mut sorted: Vec<&MountPath> = paths.collect();
    sorted.sort_unstable_by_key(|path| path.as_str().split('/').collect::<Vec<_>>());
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    for (outer, inner) in pairs {
        if outer.overlaps(inner) {
            let (outer, inner) = (outer.as_str(), inner.as_str());
            return Err(format!("{inner} and {outer} are within each other"));
        }
    }
    Ok(())
}

/// A request to create a volume.
#[derive(Debug, Clone)]
pub struct VolumeRequest {
    pub name: Name,
    pub size_gib: u32,
    pub cpu_tier: CpuTier,
}

#[cfg(test)]
mod tests {
    use super::{MountPath, check_paths};

    #[test]
    fn paths_of_the_system_are_refused() {
        for good in [
            "/data",
            "/mnt/x",
            "/opt/tools",
            "/srv",
            "/.cache",
            "/tmp/x",
            "/variants",
            "/usrlocal",
            "/a/.b..c",
            "/homes/user",
        ] {
            assert!(MountPath::parse(good).is_ok(), "{good}");
        }
        let long = format!("/{}", "a".repeat(255));
        for bad in [
            "",
            "/",
            "data",
            "/data/",
            "//data",
            "/data/../etc",
            "/./data",
            "/da ta",
            "/da:ta",
            "/da,ta",
            "/dä",
            "/etc",
            "/etc/x",
            "/usr/local/x",
            "/var/lib/x",
            "/var",
            "/proc/1",
            "/home",
            "/home/user",
            "/home/user/data",
            "/home/user/.ssh/x",
            "/opt",
            "/tmp",
            "/tmp/.X11-unix",
            "/tmp/.X11-unix/x",
            "/root",
            "/lib64",
            &long,
        ] {
            assert!(MountPath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_within_each_other_are_found() {
        let check = |paths: &[&str]| {
            let paths: Vec<_> = paths.iter().map(|p| MountPath::parse(p).unwrap()).collect();
            check_paths(paths.iter())
        };
        assert!(check(&["/a", "/b", "/ab", "/a-b/c"]).is_ok());
        for wrong in [
            &["/a", "/a"][..],
            &["/a/b", "/c", "/a"],
            &["/a/b/c", "/a-b", "/a"],
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
    }
}
