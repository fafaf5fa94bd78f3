//! GPUs through the Container Device Interface (CDI). Files on the node, such as those below
//! `/etc/cdi`, describe the devices behind names such as `nvidia.com/gpu=0`.

use crate::api::model::Info;
use crate::product::Product;
use wharf_guest::version_numbers;

/// The first Podman that supports CDI names.
const PODMAN_WITH_CDI: (u32, u32) = (4, 1);

/// Returns whether the engine supports CDI. A Docker with CDI lists the directories of the files.
pub fn are_handed_out(product: &Product, info: &Info) -> bool {
    if product.is_podman() {
        version_numbers(&product.version) >= PODMAN_WITH_CDI
    } else {
        info.cdi_spec_dirs
            .as_ref()
            .is_some_and(|dirs| !dirs.is_empty())
    }
}

/// `vendor/class=name`
pub fn is_qualified(device: &str) -> bool {
    let parts = device
        .split_once('=')
        .and_then(|(kind, name)| Some((kind.split_once('/')?, name)));
    parts.is_some_and(|((vendor, class), name)| {
        let is_part = |part: &str| {
            let mut bytes = part.bytes();
            bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
                && bytes.all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
        };
        [vendor, class, name].into_iter().all(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::{are_handed_out, is_qualified};
    use crate::api::model::Info;
    use crate::product::Product;

    #[test]
    fn a_device_has_a_vendor_a_class_and_a_name() {
        assert!(is_qualified("nvidia.com/gpu=0"));
        assert!(is_qualified("nvidia.com/gpu=GPU-4c5a:1"));
        for wrong in [
            "A100#0",
            "/dev/nvidia0",
            "nvidia.com/gpu",
            "a/b=",
            "=/",
            "a/b/c=d",
        ] {
            assert!(!is_qualified(wrong), "{wrong}");
        }
    }

    #[test]
    fn support_follows_from_version_and_info() {
        let product = |server| Product::of_headers(server, "1.41").unwrap();
        let (without, with) = (
            Info::default(),
            Info {
                cdi_spec_dirs: Some(vec!["/etc/cdi".into()]),
                ..Info::default()
            },
        );
        assert!(!are_handed_out(
            &product("Docker/20.10.24 (linux)"),
            &without
        ));
        assert!(are_handed_out(&product("Docker/28.3.0 (linux)"), &with));
        assert!(are_handed_out(&product("Libpod/4.3.1 (linux)"), &without));
        assert!(!are_handed_out(&product("Libpod/4.0.2 (linux)"), &without));
    }
}
