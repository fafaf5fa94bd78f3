//! What the engine is and can do.

use crate::api::model::{Info, Version};
use crate::context::Context;
use crate::create_body::GIB;
use crate::settings::DiskLimit;
use wharf_guest::{Error, Features, Health};

/// The oldest version of the interface that has all that is used: Docker 20.10, Podman 4.
const OLDEST_API: (u32, u32) = (1, 41);
/// The first Podman whose Docker interface can change a container's size.
const PODMAN_WITH_UPDATE: u32 = 5;

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface; [`Error::Unsupported`] on an engine that is too old.
pub fn probe(ctx: &Context) -> Result<Health, Error> {
    let version = ctx
        .api
        .version()?
        .map_err(|refusal| refusal.during("asking for the version"))?;
    let info = ctx
        .api
        .info()?
        .map_err(|refusal| refusal.during("asking what the node has"))?;
    if numbers(&version.api_version) < OLDEST_API {
        return Err(Error::Unsupported(format!(
            "the engine speaks API {}; 1.41 is needed (Docker 20.10, Podman 4, or newer)",
            version.api_version
        )));
    }
    Ok(Health {
        version: format!("{} {}", product(&version), version.version),
        features: Features {
            containers: true,
            vms: false,
            live_resize: !is_podman(&version) || numbers(&version.version).0 >= PODMAN_WITH_UPDATE,
            live_disk_grow: false,
            disk_limit: limits_disks(ctx.settings.disk_limit, &info),
            gpus: false,
            stats: true,
            network: true,
            kvm: false,
        },
        n_vcpus: info.ncpu,
        mem_gib: u32::try_from(info.mem_total / GIB).unwrap_or(u32::MAX),
        disk_size_gib: 0,
        gpus: Vec::new(),
        boot_id: String::new(),
    })
}

/// With `auto`, only storage that surely limits counts: `overlay2` does on some file systems, and
/// does not say so here.
fn limits_disks(setting: DiskLimit, info: &Info) -> bool {
    match setting {
        DiskLimit::On => true,
        DiskLimit::Off => false,
        DiskLimit::Auto => ["btrfs", "zfs", "devicemapper"].contains(&info.driver.as_str()),
    }
}

fn product(version: &Version) -> &str {
    match version
        .components
        .as_deref()
        .and_then(|components| components.first())
    {
        Some(first) if first.name != "Engine" && !first.name.is_empty() => &first.name,
        _ => "Docker Engine",
    }
}

fn is_podman(version: &Version) -> bool {
    product(version).to_lowercase().contains("podman")
}

/// `20.10.24+dfsg1` → (20, 10)
fn numbers(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{is_podman, limits_disks, numbers, product};
    use crate::api::model::{Component, Info, Version};
    use crate::settings::DiskLimit;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(numbers("20.10.24+dfsg1"), (20, 10));
        assert!(numbers("1.9") < numbers("1.41"));
        assert!(numbers("1.53") > (1, 41));
        assert_eq!(numbers(""), (0, 0));
    }

    #[test]
    fn the_product_is_named() {
        let named = |name: &str| Version {
            components: Some(vec![Component { name: name.into() }]),
            ..Version::default()
        };
        assert!(is_podman(&named("Podman Engine")));
        assert_eq!(product(&named("Engine")), "Docker Engine");
        assert_eq!(product(&Version::default()), "Docker Engine");
    }

    #[test]
    fn a_disk_limit_is_claimed_where_it_surely_holds() {
        let on = |driver: &str| Info {
            driver: driver.into(),
            ..Info::default()
        };
        assert!(limits_disks(DiskLimit::Auto, &on("btrfs")));
        assert!(!limits_disks(DiskLimit::Auto, &on("overlay2")));
        assert!(limits_disks(DiskLimit::On, &on("overlay2")));
        assert!(!limits_disks(DiskLimit::Off, &on("btrfs")));
    }
}
