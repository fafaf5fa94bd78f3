//! The engine's version and capabilities.

use crate::api::model::Info;
use crate::context::Context;
use crate::disk_limit;
use crate::gpu;
use crate::product::Product;
use crate::settings::DiskLimit;
use crate::{snapshots, vm, volumes};
use wharf_guest::{DiskGrow, During, Error, Features, GIB, Health, VolumeContent, version_numbers};

/// The oldest version of the interface with all required features: Docker 20.10, Podman 4.
const OLDEST_API: (u32, u32) = (1, 41);

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface; [`Error::Unsupported`] if the engine is too old.
pub fn probe(ctx: &Context) -> Result<Health, Error> {
    let product = Product::of(ctx)?;
    let info = ctx.api.info()?.during("reading the node's resources")?;
    if version_numbers(&product.api_version) < OLDEST_API {
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
    if ctx.settings.disk_limit == DiskLimit::On && info.has_snapshotter() {
        return Err(Error::Unsupported(
            "settings.disk_limit: the engine keeps containers in containerd's store, which takes a \
             limit and does not enforce it; give dockerd a storage driver of its own, or leave the \
             setting out"
                .to_owned(),
        ));
    }
    Ok(Health {
        version: format!("{} {}", product.name, product.version),
        features: Features {
            containers: true,
            // Virtual machines are untested on Podman.
            vms: !product.is_podman(),
            live_resize: product.resizes_live() && !takes_no_limits(&info),
            disk_grow: if product.moves_content() {
                DiskGrow::Stopped
            } else {
                DiskGrow::No
            },
            disk_limit: ctx.settings.disk_limit.is_certain(disk_limit::of(&info)),
            gpus: gpu::are_handed_out(&product, &info),
            stats: true,
            network: true,
            kvm: vm::have_kvm(ctx)?,
            volumes: volumes::are_made(ctx, &product, &info),
            late_attach: false,
            // A copy has lxcfs, which such an engine may refuse only once the old disk is gone.
            content: product.moves_content() && !info.is_rootless(),
            volume_content: if product.moves_content() && volumes::are_made(ctx, &product, &info) {
                VolumeContent::AtRest
            } else {
                VolumeContent::None
            },
            snapshots: snapshots::kind(&info),
        },
        n_vcpus: info.ncpu,
        mem_gib: u32::try_from(info.mem_total / GIB).unwrap_or(u32::MAX),
        disk_size_gib: 0,
        gpus: Vec::new(),
        boot_id: String::new(),
        hint: String::new(),
    })
}

/// Engines without root on cgroups v1 silently ignore limits of CPU and memory.
pub(crate) fn takes_no_limits(info: &Info) -> bool {
    info.is_rootless() && info.cgroup_version == "1"
}

fn is_auto(mode: &str) -> bool {
    mode == "auto" || mode.starts_with("auto:")
}

#[cfg(test)]
mod tests {
    use super::takes_no_limits;

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
