//! What a probe leaves for the calls after it, so that they need not ask the engine again.

use crate::api::model::Info;
use serde::{Deserialize, Serialize};

/// Of the engine, as it was then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hint {
    /// Whether it enforces the size of a disk; none where only a creation tells.
    pub disk_limit: Option<bool>,
}

impl Hint {
    /// Nothing where there is none.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
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

/// By the storage drivers of moby (`daemon/graphdriver`) and Podman (containers/storage `drivers`).
/// Overlays limit where they are on an XFS that counts by project, which does not show here, and refuse
/// elsewhere. Without root no quota can be switched on. The snapshotters of containerd take a limit and
/// do nothing about it, whatever they are called.
fn disk_limit(info: &Info) -> Option<bool> {
    if info.is_rootless() || info.has_snapshotter() {
        return Some(false);
    }
    match info.driver.as_str() {
        "btrfs" | "zfs" | "devicemapper" => Some(true),
        "overlay2" | "overlay" => match info.driver_says("Backing Filesystem")? {
            "xfs" => None,
            _ => Some(false),
        },
        "fuse-overlayfs" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Hint;
    use serde_json::{Value, json};

    fn of(info: Value) -> Option<bool> {
        let hint = Hint::of(&serde_json::from_value(info).unwrap());
        assert_eq!(Hint::read(&hint.text()), hint);
        hint.disk_limit
    }

    #[test]
    fn where_disks_are_limited_is_known_as_far_as_the_engine_tells() {
        let on = |driver: &str, filesystem: &str| {
            let status = json!([
                ["Backing Filesystem", filesystem],
                ["Native Overlay Diff", "true"]
            ]);
            of(json!({ "Driver": driver, "DriverStatus": status }))
        };
        for overlay in ["overlay2", "overlay"] {
            assert_eq!(on(overlay, "extfs"), Some(false));
            assert_eq!(on(overlay, "xfs"), None);
            assert_eq!(of(json!({ "Driver": overlay })), None);
        }
        assert_eq!(on("fuse-overlayfs", "xfs"), Some(false));
        assert_eq!(of(json!({ "Driver": "vfs" })), None);
        for limits in ["btrfs", "zfs", "devicemapper"] {
            assert_eq!(
                of(json!({ "Driver": limits, "DriverStatus": null })),
                Some(true)
            );
        }
    }

    #[test]
    fn without_root_and_in_containerds_store_nothing_is_limited() {
        let docker = json!({ "Driver": "btrfs", "SecurityOptions": ["name=rootless"] });
        assert_eq!(of(docker), Some(false));
        assert_eq!(
            of(json!({ "Driver": "btrfs", "Rootless": true })),
            Some(false)
        );
        for snapshotter in ["overlayfs", "btrfs"] {
            let status = json!([["driver-type", "io.containerd.snapshotter.v1"]]);
            let info = json!({ "Driver": snapshotter, "DriverStatus": status });
            assert_eq!(of(info), Some(false));
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_hint() {
        for text in ["", "x", "[3]", r#"{"disk_limit":3}"#] {
            assert_eq!(Hint::read(text), Hint::default());
        }
    }
}
