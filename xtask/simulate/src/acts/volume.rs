//! Acts of users on their volumes.

use super::instance::target;
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::setup::USERS;
use crate::sim::Sim;
use wharf_db::{Rows as _, VOLUMES};
use wharf_domain::capacity::CpuTier;
use wharf_domain::ids::{NodeId, UserId};
use wharf_domain::name::Name;
use wharf_domain::volume::{MountPath, MountRequest, OfVolume, Volume, VolumeRequest};
use wharf_ground::caller::Caller;
use wharf_instances::IdempotencyKey;
use wharf_instances::volumes::{CreateVolume, VolumeCondition};

acts![
    create_volume 6,
    delete_volume 5,
    rename_volume 2,
    share_volume 3,
    unshare_volume 2,
    attach_volume 6,
    detach_volume 3,
];

/// Names that users give. They are few, so that names are taken.
const NAMES: [&str; 3] = ["data", "models", "logs"];
const SIZES: [u32; 3] = [5, 20, 60];

/// The volume that a number selects among those of all users that fit.
fn pick(sim: &Sim, number: u64, fits: impl Fn(&Volume) -> bool) -> Option<Volume> {
    let found = sim.db.read(|rows| {
        let mut found = Vec::new();
        for row in rows.all(&VOLUMES)? {
            let (_, (), row) = row?;
            found.extend(Some(row).filter(|row| !row.deleted && fits(row)));
        }
        Ok(found)
    });
    let found = found.unwrap_or_default();
    let n = number.checked_rem(found.len() as u64)?;
    found.into_iter().nth(usize::try_from(n).ok()?)
}

/// A volume at a directory: one of the user's own, or one of any user, which may not be shared. One on the node, if
/// there is any, comes first.
pub fn mount(
    sim: &Sim,
    caller: &Caller,
    args: Args,
    node: Option<&NodeId>,
) -> Option<MountRequest> {
    let is_own = !args.is_one_in(2, 4);
    let number = args.number(2, u64::MAX);
    let fits = |volume: &Volume| (volume.owner == caller.user) == is_own;
    let near = pick(sim, number, |volume| {
        fits(volume) && node == Some(&volume.node)
    });
    let volume = near.or_else(|| pick(sim, number, fits))?;
    Some(MountRequest {
        volume: volume.id.to_string(),
        path: MountPath::parse("/data").ok()?,
        read_only: args.is_one_in(3, 3).then_some(true),
    })
}

/// A volume of the user who acts. One that is not made yet comes first in half of the cases.
struct Own {
    who: &'static str,
    caller: Caller,
    volume: Volume,
    named: String,
    condition: VolumeCondition,
}

impl Own {
    fn of(sim: &Sim, args: Args) -> Option<Self> {
        let (who, caller) = args.user(sim)?;
        let number = args.number(1, u64::MAX);
        let is_own = |volume: &Volume| volume.owner == caller.user;
        let new = args
            .is_one_in(1, 2)
            .then(|| pick(sim, number, |volume| is_own(volume) && !volume.made));
        let volume = new.flatten().or_else(|| pick(sim, number, is_own))?;
        let name = volume.name.clone();
        let condition = if args.is_one_in(2, 4) {
            VolumeCondition::new(move |view| Ok(view.volume.name == name))
        } else {
            VolumeCondition::default()
        };
        Some(Self {
            named: volume.id.to_string(),
            who,
            caller,
            volume,
            condition,
        })
    }

    fn words(&self, what: &str) -> String {
        let Volume { id, name, .. } = &self.volume;
        format!("{what} volume {id} ({})", name.as_str())
    }
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
    // One of two keys, so that requests are repeated, sometimes with another body.
    let key = args.is_one_in(3, 3).then(|| {
        let key = format!("volume-{}", args.number(3, 2));
        IdempotencyKey::new(&key, &size_gib.to_le_bytes())
    });
    let words = format!(
        "creates a volume of {size_gib} GiB named {}{}",
        name.as_str(),
        if key.is_some() {
            " with an idempotency key"
        } else {
            ""
        }
    );
    let request = VolumeRequest {
        name,
        size_gib,
        cpu_tier: CpuTier::GeneralPurpose,
        content: None,
    };
    let ask = Ask::CreateVolume {
        owner: caller.user,
        size_gib,
    };
    let created = sim
        .app
        .create_volume(&caller, CreateVolume { request, key });
    sim.ask(who, words, Some(ask), created, |_| None).await;
}

async fn delete_volume(sim: Sim, args: Args) {
    let Some(own) = Own::of(&sim, args) else {
        return;
    };
    let deleted = sim
        .app
        .delete_kept::<OfVolume>(&own.caller, &own.named, &own.condition);
    let ask = Ask::DeleteVolume(own.volume.id);
    sim.ask(own.who, own.words("deletes"), Some(ask), deleted, |()| None)
        .await;
}

async fn rename_volume(sim: Sim, args: Args) {
    let (Some(own), Some(name)) = (Own::of(&sim, args), args.of(3, &NAMES)) else {
        return;
    };
    let words = format!("{} to {name}", own.words("renames"));
    let ask = Ask::RenameVolume {
        id: own.volume.id,
        name: name.to_owned(),
    };
    let name = Name::parse(name).ok();
    let renamed = sim
        .app
        .rename_volume(&own.caller, &own.named, &own.condition, name);
    sim.ask(own.who, words, Some(ask), renamed, |_| None).await;
}

async fn share_volume(sim: Sim, args: Args) {
    let (Some(own), Some(email)) = (Own::of(&sim, args), args.of(3, &USERS)) else {
        return;
    };
    let words = format!("{} with {email}", own.words("shares"));
    let ask = (args.of(3, &[1, 2, 3])).map(|reader| Ask::ShareVolume {
        id: own.volume.id,
        reader: UserId(reader),
    });
    let shared = sim
        .app
        .share_volume(&own.caller, &own.named, email.to_owned());
    sim.ask(own.who, words, ask, shared, |_| None).await;
}

async fn unshare_volume(sim: Sim, args: Args) {
    let Some(own) = Own::of(&sim, args) else {
        return;
    };
    let shares = sim.app.volume_shares(&own.caller, &own.named);
    let share = shares.unwrap_or_default().into_iter().next();
    let Some(share) = share else {
        return;
    };
    let words = format!("{} with {} no more", own.words("shares"), share.user);
    let unshared = sim
        .app
        .unshare_volume(&own.caller, &own.named, Some(share.id));
    sim.ask(own.who, words, None, unshared, |()| None).await;
}

async fn attach_volume(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, |_| true) else {
        return;
    };
    let Some(request) = mount(&sim, &of.caller, args, Some(&of.instance.node)) else {
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
    let number = args.number(2, u64::MAX);
    let is_any = args.is_one_in(3, 3);
    let fits = |volume: &Volume| is_any || volume.owner == of.caller.user;
    let Some(volume) = pick(&sim, number, fits) else {
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
