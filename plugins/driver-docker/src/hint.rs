//! The probe cache: findings of a probe that later calls need not request from the engine again.

use crate::api::model::Info;
use serde::{Deserialize, Serialize};

/// Findings about the engine at the time of the probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeCache {
    /// Whether the engine enforces disk sizes; none if only a creation can tell.
    pub disk_limit: Option<bool>,
}

impl ProbeCache {
    /// Parses the text; the default if it is empty or invalid.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Derives the cache from the engine's info.
    #[must_use]
    pub fn of(info: &Info) -> Self {
        Self {
            disk_limit: disk_limit(info),
        }
    }

    /// The text form that [`Self::read`] parses.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Follows the storage drivers of moby (`daemon/graphdriver`) and Podman (containers/storage
/// `drivers`). Overlays need an XFS with project quotas, which the info does not show; they refuse
/// a limit elsewhere. Without root, no quota can be enabled. The snapshotters of containerd accept
/// a limit and ignore it, even one named `btrfs`.
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
    use super::ProbeCache;
    use serde_json::{Value, json};

    fn of(info: Value) -> Option<bool> {
        let cache = ProbeCache::of(&serde_json::from_value(info).unwrap());
        assert_eq!(ProbeCache::read(&cache.text()), cache);
        cache.disk_limit
    }

    #[test]
    fn disk_limits_follow_from_the_storage_driver() {
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
    fn rootless_engines_and_containerds_store_have_no_disk_limit() {
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
    fn invalid_text_gives_the_default() {
        for text in ["", "x", "[3]", r#"{"disk_limit":3}"#] {
            assert_eq!(ProbeCache::read(text), ProbeCache::default());
        }
    }
}
