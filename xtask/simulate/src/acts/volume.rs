//! Acts of users on their volumes.

use super::instance::target;
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::sim::Sim;
use wharf_db::{Rows as _, VOLUMES};
use wharf_domain::capacity::CpuTier;
use wharf_domain::name::Name;
use wharf_domain::volume::{MountPath, MountRequest, Volume, VolumeRequest};
use wharf_ground::caller::Caller;
use wharf_instances::volumes::{CreateVolume, VolumeCondition};

acts![
    create_volume 6,
    delete_volume 4,
    attach_volume 5,
    detach_volume 3,
];

/// Names that users give. They are few, so that names are taken.
const NAMES: [&str; 3] = ["data", "models", "logs"];
const SIZES: [u32; 3] = [5, 20, 60];

/// The volume that a number selects among those of a user.
fn pick(sim: &Sim, caller: &Caller, number: u64) -> Option<Volume> {
    let found = sim.db.read(|rows| {
        let mut found = Vec::new();
        for row in rows.all(&VOLUMES)? {
            let (_, (), row) = row?;
            found.extend((row.owner == caller.user && !row.deleted).then_some(row));
        }
        Ok(found)
    });
    let found = found.unwrap_or_default();
    let n = number.checked_rem(found.len() as u64)?;
    found.into_iter().nth(usize::try_from(n).ok()?)
}

/// A volume of a user at a directory.
pub fn mount(sim: &Sim, caller: &Caller, args: Args) -> Option<MountRequest> {
    let volume = pick(sim, caller, args.number(2, u64::MAX))?;
    Some(MountRequest {
        volume: volume.id.to_string(),
        path: MountPath::parse("/data").ok()?,
        read_only: args.is_one_in(3, 3).then_some(true),
    })
}

async fn create_volume(sim: Sim, args: Args) {
    let (Some((who, caller)), Some(name), Some(size_gib)) =
        (args.user(&sim), args.of(1, &NAMES), args.of(2, &SIZES))
    else {
        return;
    };
    let Ok(name) = Name::parse(name) else {
        return;
    };
    let words = format!("creates a volume of {size_gib} GiB named {}", name.as_str());
    let request = VolumeRequest {
        name,
        size_gib,
        cpu_tier: CpuTier::GeneralPurpose,
    };
    let ask = Ask::CreateVolume {
        owner: caller.user,
        size_gib,
    };
    let created = sim
        .app
        .create_volume(&caller, CreateVolume { request, key: None });
    sim.ask(who, words, Some(ask), created, |_| None).await;
}

async fn delete_volume(sim: Sim, args: Args) {
    let Some((who, caller)) = args.user(&sim) else {
        return;
    };
    let Some(volume) = pick(&sim, &caller, args.number(1, u64::MAX)) else {
        return;
    };
    let (id, condition) = (volume.id, VolumeCondition::default());
    let words = format!("deletes volume {id} ({})", volume.name.as_str());
    let named = id.to_string();
    let deleted = sim.app.delete_volume(&caller, &named, &condition);
    sim.ask(who, words, Some(Ask::DeleteVolume(id)), deleted, |()| None)
        .await;
}

async fn attach_volume(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, |_| true) else {
        return;
    };
    let Some(request) = mount(&sim, &of.caller, args) else {
        return;
    };
    let words = format!("attaches volume {} to", request.volume);
    let ask = Ask::Mounts(of.instance.id);
    let attached = sim
        .app
        .attach_volume(&of.caller, &of.selector, &of.condition, request);
    sim.ask(of.who, of.words(&words), Some(ask), attached, |_| None)
        .await;
}

async fn detach_volume(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, |_| true) else {
        return;
    };
    let Some(volume) = pick(&sim, &of.caller, args.number(2, u64::MAX)) else {
        return;
    };
    let words = format!("detaches volume {} from", volume.id);
    let ask = Ask::Mounts(of.instance.id);
    let named = volume.id.to_string();
    let detached = sim
        .app
        .detach_volume(&of.caller, &of.selector, &of.condition, named);
    sim.ask(of.who, of.words(&words), Some(ask), detached, |_| None)
        .await;
}
