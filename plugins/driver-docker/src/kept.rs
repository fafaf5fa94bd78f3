//! What a probe leaves for the calls after it, so that they need not ask the engine again.

use crate::api::model::Info;
use serde::{Deserialize, Serialize};

/// Of the engine, as it was then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Whether it enforces the size of a disk; none where only a creation tells.
    pub disk_limit: Option<bool>,
}

impl Kept {
    /// Nothing where no probe came before, or that of another version of this driver.
    #[must_use]
    pub fn read(kept: &str) -> Self {
        serde_json::from_str(kept).unwrap_or_default()
    }

    /// What the engine says of itself.
    #[must_use]
    pub fn of(info: &Info) -> Self {
        Self {
            disk_limit: disk_limit(info),
        }
    }

    /// As [`Self::read`] reads it.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `overlay2` does where it is on an XFS that counts by project, which does not show here; on no other
/// file system (moby `daemon/graphdriver/overlay2`).
fn disk_limit(info: &Info) -> Option<bool> {
    match info.driver.as_str() {
        "btrfs" | "zfs" | "devicemapper" => Some(true),
        "overlay2" => match info.backing_filesystem()? {
            "xfs" => None,
            _ => Some(false),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    fn of(info: &str) -> Option<bool> {
        let kept = Kept::of(&serde_json::from_str(info).unwrap());
        assert_eq!(Kept::read(&kept.text()), kept);
        kept.disk_limit
    }

    #[test]
    fn where_disks_are_limited_is_known_as_far_as_the_engine_tells() {
        assert_eq!(of(r#"{"Driver":"btrfs","DriverStatus":null}"#), Some(true));
        let on = |filesystem: &str| {
            let status = format!(
                r#"[["Backing Filesystem","{filesystem}"],["Native Overlay Diff","true"]]"#
            );
            of(&format!(
                r#"{{"Driver":"overlay2","DriverStatus":{status}}}"#
            ))
        };
        assert_eq!(on("extfs"), Some(false));
        assert_eq!(on("xfs"), None);
        assert_eq!(of(r#"{"Driver":"overlay2"}"#), None);
        assert_eq!(
            of(
                r#"{"Driver":"overlayfs","DriverStatus":[["driver-type","io.containerd.snapshotter.v1"]]}"#
            ),
            None
        );
    }

    #[test]
    fn what_another_version_left_is_nothing() {
        for text in ["", "x", "[]", r#"{"disk_limit":3}"#, r#"{"more":1}"#] {
            assert_eq!(Kept::read(text), Kept::default());
        }
    }
}
