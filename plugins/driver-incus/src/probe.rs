//! The engine's version and capabilities.

use crate::api::model::Card;
use crate::context::Context;
use crate::operators_part;
use crate::settings::Mode;
use crate::{snapshots, volumes};
use wharf_guest::{
    DiskGrow, During, Error, Features, GIB, Gpu, Health, VolumeContent, log, version_numbers,
};

/// The oldest release with all required features, the first with long support.
const OLDEST: (u32, u32) = (6, 0);
/// The state of a member that takes instances.
const ONLINE: &str = "Online";

/// See the `driver` interface.
///
/// # Errors
/// See the `driver` interface; [`Error::Unsupported`] if the engine is too old, does not know the
/// certificate, or is another member.
pub fn probe(ctx: &Context) -> Result<Health, Error> {
    let server = ctx.api.server()?.during("reading the version")?;
    if server.auth != "trusted" {
        return Err(Error::Unsupported(
            "the engine does not trust the node's certificate; add it with `incus config trust \
             add-certificate`"
                .into(),
        ));
    }
    let about = &server.environment;
    if version_numbers(&about.server_version) < OLDEST {
        return Err(Error::Unsupported(format!(
            "Incus {}; 6.0 or newer is needed",
            about.server_version
        )));
    }
    let wanted = &ctx.settings.member;
    if !about.server_clustered {
        return Err(Error::Unsupported(format!(
            "the engine is in no cluster; make it one of one member with `incus cluster enable {wanted}`"
        )));
    }
    if about.server_name != *wanted {
        return Err(Error::Unsupported(format!(
            "settings.member: the endpoint is that of the member {:?}, not of {wanted:?}",
            about.server_name
        )));
    }
    let member = ctx.api.member()?.during("reading the member's state")?;
    if member.status != ONLINE {
        // A member with an old release waits for the others, and one without quorum is out of reach.
        log!(Warn, "the member {wanted} is {:?}", member.status);
    }
    networks(ctx)?;
    let pool = volumes::pool(ctx)?;
    let project = ctx.api.project()?.during("reading settings.project")?;
    let limits_disks = volumes::LIMITING.contains(&pool.driver.as_str());
    let resources = ctx
        .api
        .resources()?
        .during("reading the node's resources")?;
    let space = ctx
        .api
        .pool_resources()?
        .during("reading the pool's size")?;
    let gpus: Vec<_> = resources.gpu.cards.iter().filter_map(gpu).collect();
    Ok(Health {
        version: format!("Incus {}", about.server_version),
        features: Features {
            containers: true,
            vms: false,
            live_resize: true,
            disk_grow: if limits_disks {
                DiskGrow::Running
            } else {
                DiskGrow::No
            },
            disk_limit: limits_disks,
            gpus: !gpus.is_empty(),
            stats: true,
            network: true,
            kvm: false,
            volumes: volumes::are_made(&server, &pool),
            late_attach: true,
            content: true,
            volume_content: VolumeContent::None,
            snapshots: snapshots::kind(&pool, &project),
        },
        n_vcpus: u32::try_from(resources.cpu.total).unwrap_or(u32::MAX),
        mem_gib: gib(resources.memory.total),
        disk_size_gib: gib(space.space.total),
        gpus,
        boot_id: String::new(),
        hint: String::new(),
    })
}

/// Checks the operator's part of the instances' networks.
fn networks(ctx: &Context) -> Result<(), Error> {
    match &ctx.settings.mode {
        Mode::Bridge => {
            ctx.api.bridge()?.during("reading settings.network")?;
            Ok(())
        }
        Mode::Ovn(ovn) => operators_part::check(ctx, ovn),
    }
}

fn gib(bytes: u64) -> u32 {
    u32::try_from(bytes / GIB).unwrap_or(u32::MAX)
}

/// A card that a program of its maker drives. The graphics of a server's board have none.
fn gpu(card: &Card) -> Option<Gpu> {
    (!card.pci_address.is_empty() && card.driver == "nvidia").then(|| Gpu {
        model: if card.product.is_empty() {
            card.vendor.clone()
        } else {
            card.product.clone()
        },
        device: card.pci_address.clone(),
    })
}
