//! Whether an engine enforces disk sizes.

use crate::api::model::Info;

/// Returns whether the engine enforces disk sizes; none if only a creation can tell.
///
/// Follows the storage drivers of moby (`daemon/graphdriver`) and Podman (containers/storage
/// `drivers`). Overlays need an XFS with project quotas, which the info does not show; they refuse
/// a limit elsewhere. Without root, no quota can be enabled. The snapshotters of containerd accept
/// a limit and ignore it, even one named `btrfs`.
pub fn of(info: &Info) -> Option<bool> {
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
    use serde_json::{Value, json};

    fn of(info: Value) -> Option<bool> {
        super::of(&serde_json::from_value(info).unwrap())
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
}
