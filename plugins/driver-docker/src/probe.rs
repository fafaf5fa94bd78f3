//! What the engine is and can do.

use crate::api::model::Info;
use crate::context::Context;
use crate::create_body::GIB;
use crate::gpu;
use crate::kept::Kept;
use crate::product::{Product, numbers};
use crate::settings::DiskLimit;
use crate::vm;
use wharf_guest::{DiskGrow, Error, Features, Health};

/// The oldest version of the interface that has all that is used: Docker 20.10, Podman 4.
const OLDEST_API: (u32, u32) = (1, 41);

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface; [`Error::Unsupported`] on an engine that is too old.
pub fn probe(ctx: &Context) -> Result<Health, Error> {
    let product = Product::of(ctx)?;
    let info = ctx
        .api
        .info()?
        .map_err(|refusal| refusal.during("asking what the node has"))?;
    if numbers(&product.api_version) < OLDEST_API {
        return Err(Error::Unsupported(format!(
            "the engine speaks API {}; 1.41 is needed (Docker 20.10, Podman 4, or newer)",
            product.api_version
        )));
    }
    if ctx.settings.userns.as_deref().is_some_and(is_auto) && !product.makes_user_namespaces() {
        return Err(Error::Unsupported(format!(
            "settings.userns: {} {} hangs when it picks user namespaces for several containers at \
             once; leave the setting out, or use Podman 5",
            product.name, product.version
        )));
    }
    let kept = Kept::of(&info);
    Ok(Health {
        version: format!("{} {}", product.name, product.version),
        features: Features {
            containers: true,
            // None has been tried on a Podman.
            vms: !product.is_podman(),
            live_resize: product.resizes_live() && !takes_no_limits(&info),
            disk_grow: match product.moves_content() {
                true => DiskGrow::Stopped,
                false => DiskGrow::No,
            },
            disk_limit: limits_disks(ctx.settings.disk_limit, &kept),
            gpus: gpu::are_handed_out(&product, &info),
            stats: true,
            network: true,
            kvm: vm::have_kvm(ctx)?,
        },
        n_vcpus: info.ncpu,
        mem_gib: u32::try_from(info.mem_total / GIB).unwrap_or(u32::MAX),
        disk_size_gib: 0,
        gpus: Vec::new(),
        boot_id: String::new(),
        kept: kept.text(),
    })
}

/// Without root there are no limits of CPU and memory on cgroups v1, and none are refused either.
fn takes_no_limits(info: &Info) -> bool {
    let mut options = info.security_options.iter().flatten();
    let is_rootless = info.rootless || options.any(|option| option == "name=rootless");
    is_rootless && info.cgroup_version == "1"
}

fn is_auto(mode: &str) -> bool {
    mode == "auto" || mode.starts_with("auto:")
}

/// With `auto`, only storage that surely limits counts.
fn limits_disks(setting: DiskLimit, kept: &Kept) -> bool {
    match setting {
        DiskLimit::On => true,
        DiskLimit::Off => false,
        DiskLimit::Auto => kept.disk_limit == Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::{limits_disks, takes_no_limits};
    use crate::kept::Kept;
    use crate::settings::DiskLimit;

    #[test]
    fn a_disk_limit_is_claimed_where_it_surely_holds() {
        let kept = |disk_limit| Kept { disk_limit };
        assert!(limits_disks(DiskLimit::Auto, &kept(Some(true))));
        assert!(!limits_disks(DiskLimit::Auto, &kept(Some(false))));
        assert!(!limits_disks(DiskLimit::Auto, &kept(None)));
        assert!(limits_disks(DiskLimit::On, &kept(Some(false))));
        assert!(!limits_disks(DiskLimit::Off, &kept(Some(true))));
    }

    #[test]
    fn without_root_cgroups_v1_take_no_limits() {
        let told = |text: &str| takes_no_limits(&serde_json::from_str(text).unwrap());
        assert!(told(
            r#"{"CgroupVersion":"1","Rootless":true,"SecurityOptions":null}"#
        ));
        assert!(told(
            r#"{"CgroupVersion":"1","SecurityOptions":["name=seccomp,profile=default","name=rootless"]}"#
        ));
        assert!(!told(r#"{"CgroupVersion":"2","Rootless":true}"#));
        assert!(!told(
            r#"{"CgroupVersion":"1","SecurityOptions":["name=userns"]}"#
        ));
    }
}
