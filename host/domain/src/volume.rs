//! The volume: a disk with a name of its own on one node. It outlives the instances that have it.

use super::backup::ContentOf;
use super::capacity::CpuTier;
use super::event::EventKind;
use super::ids::{BackupId, VolumeId};
use super::kept::{Kept, KeptEvent, KeptFailure, KeptKind, KeptStatus};
use super::name::Name;
use super::quota::QuotaUsage;
use serde::{Deserialize, Deserializer, Serialize};

/// The most volumes of one instance.
pub const MAX_MOUNTS: usize = 8;

/// A volume.
pub type Volume = Kept<OfVolume>;

/// The part of a volume's row that other kept data lacks. Rows of an earlier version end before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfVolume {
    /// The backup that copies it now.
    #[serde(deserialize_with = "or_none")]
    pub copy: Option<VolumeCopy>,
    /// The backup that it is made from.
    #[serde(deserialize_with = "or_none")]
    pub content: Option<ContentOf>,
}

/// A backup of a volume that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeCopy {
    pub backup: BackupId,
    /// Whether no instance may write the volume meanwhile.
    pub at_rest: bool,
}

/// The value of a last field of rows, of which those of earlier versions have none.
pub(super) fn or_none<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(from).unwrap_or_default())
}

impl KeptKind for OfVolume {
    type Id = VolumeId;
    const WORD: &'static str = "volume";
    const BILLED_AT_ONCE: bool = true;

    fn event(&self, status: KeptStatus, what: KeptEvent) -> EventKind {
        EventKind::Volume(status, what)
    }

    fn usage(size_gib: u32) -> QuotaUsage {
        QuotaUsage {
            n_volumes: 1,
            volume_gib: u64::from(size_gib),
            ..QuotaUsage::default()
        }
    }

    fn flavor(&self) -> Option<&str> {
        None
    }

    fn not_made(&self) -> KeptFailure {
        match self.content {
            Some(_) => KeptFailure::NoContent,
            None => KeptFailure::NotMade,
        }
    }

    fn reason(failure: KeptFailure) -> &'static str {
        match failure {
            KeptFailure::NoContent => {
                "The content of its backup did not come to the host. Verify the backup, delete the volume, and \
                 create it again with this backup or another one."
            }
            KeptFailure::NotMade => {
                "The host could not make the volume. Delete it and create it again; if that fails too, ask \
                 the operator, whose log has the reason."
            }
            KeptFailure::Missing => {
                "The host has the volume no more. Its data is lost unless the operator brings it back."
            }
            KeptFailure::Lost => {
                "The host has failed for good, and the data of the volume with it."
            }
        }
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
    /// The backup that has its content; none if it is empty.
    pub content: Option<ContentOf>,
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
