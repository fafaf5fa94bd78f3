//! Volumes. Engines limit the disks of containers only, so a container that runs no user's code holds each
//! volume: a directory on the holder's disk. Instances mount it by a volume of the engine.
//!
//! 1. The holder is created with a disk of the volume's size, and runs one fixed command. It makes the
//!    directory, and tries to exceed the size. Only if the engine refuses that, it tells the place of the disk.
//! 2. The volume of the engine is created, whose content is the directory. It exists only in a complete volume.
//!
//! Each step can be repeated, so an interrupted call is continued by the next one. Content from a backup comes between
//! the two steps. Its holder runs never again: what came may have replaced the programs of its image. A holder whose
//! transfer is unknown to this host is removed, as no instance has seen its content.

use crate::api::Refusal;
use crate::api::model::{Info, label};
use crate::api::volume::{Purpose, Volume as EngineVolume, VolumeCreation};
use crate::content;
use crate::context::Context;
use crate::disk_limit;
use crate::product::Product;
use crate::settings::{BtrfsQuotas, DiskLimit};
use std::collections::BTreeMap;
use wharf_guest::{
    During, Error, Limits, Mount, Moving, ObservedVolume, Spec, Volume, VolumeReport, VolumeState,
    log,
};

/// Label: the installation that owns the volume, on its holder and on the engine's volume.
const HOLDER: &str = "io.wharf.holder";
/// Label: the volume's UUID.
const VOLUME: &str = "io.wharf.volume";
/// Label: a backup has the content of the volume. The holder's programs may be those of the backup too.
const FETCHED: &str = "io.wharf.fetched";
/// Label: the volume's size in GiB.
const SIZE: &str = "io.wharf.size";
/// The names of the engine's volumes begin with it.
pub const PREFIX: &str = "wharf-volume-";
/// The storage whose limits hold for a directory, and whose place a holder can tell.
const STORAGE: &str = "btrfs";

/// Delay while the engine is at work on the holder, ms.
const BUSY_AGAIN_MS: u32 = 500;

/// Whether the node makes volumes. Their sizes hold only where those of disks do. With user namespaces of its
/// own, each container of Podman would see other owners in one volume.
pub fn are_made(ctx: &Context, product: &Product, info: &Info) -> bool {
    info.driver == STORAGE
        && !info.is_rootless()
        && !info.has_snapshotter()
        && ctx.settings.disk_limit != DiskLimit::Off
        && !(product.is_podman() && ctx.settings.userns.is_some())
}

/// See the `volumes` interface.
pub fn make(ctx: &Context, volume: &Volume, images: &[String]) -> Result<VolumeReport, Error> {
    let made = match ctx.api.volume()? {
        Ok(made) => Some(made),
        Err(refusal) if refusal.is_no_volume() => None,
        Err(refusal) => return Err(refusal.during("reading the volume")),
    };
    let held = match ctx.api.holder()? {
        Ok(held) => Some(held),
        Err(refusal) if refusal.is_not_found() => None,
        Err(refusal) => return Err(refusal.during("reading the holder of the volume")),
    };
    let size = volume.size_gib.to_string();
    let is_own = |labels| {
        label(labels, HOLDER) == Some(ctx.installation)
            && label(labels, SIZE) == Some(size.as_str())
    };
    let labels = made.as_ref().map(|made| &made.labels);
    let labels = labels
        .into_iter()
        .chain(held.as_ref().map(|held| &held.config.labels));
    if !labels.into_iter().all(is_own) {
        let why = format!("volume {} exists with another size or owner", volume.id);
        return Err(Error::Conflict(why));
    }
    let never_ran = held
        .as_ref()
        .is_none_or(|held| held.state.status == "created");
    match (made, held) {
        (Some(_), Some(_)) => return Ok(settled(VolumeState::Ready)),
        (Some(_), None) => return Ok(failed(&volume.id, "the container that held it is gone")),
        (None, held) if volume.fetched => {
            if let Some(report) = fetched(ctx, volume, held.is_some())? {
                return Ok(report);
            }
        }
        (None, Some(held)) if label(&held.config.labels, FETCHED).is_some() => {
            return complete_at_place(ctx).map(reported);
        }
        (None, Some(_)) => match fill(ctx, volume, never_ran)? {
            Filled::Is(state) => return Ok(reported(state)),
            Filled::Useless(why) => log!(Warn, "the holder of volume {}: {why}", volume.id),
        },
        (None, None) => {}
    }
    hold(ctx, volume, images)
}

/// The state of a volume whose content comes; none if it has no holder yet.
fn fetched(ctx: &Context, volume: &Volume, is_held: bool) -> Result<Option<VolumeReport>, Error> {
    let moved = ctx.api.transfer()?;
    if !is_held {
        ctx.api.end_transfer()?;
        return Ok(None);
    }
    match moved {
        Moving::Under(progress) => {
            let progress = progress.unwrap_or_default();
            return Ok(Some(reported(VolumeState::Making(progress))));
        }
        Moving::Ended(Ok(())) => return complete_at_place(ctx).map(reported).map(Some),
        Moving::Ended(Err(refusal)) => {
            remove_holder(ctx)?;
            if !refusal.is_no_space() && !refusal.is_immovable() {
                return Err(refusal.during("copying the content"));
            }
            return Ok(Some(failed(&volume.id, &refusal.message)));
        }
        Moving::Nothing => remove_holder(ctx)?,
    }
    Ok(None)
}

/// Makes the volume where its holder has told, which does not run again.
fn complete_at_place(ctx: &Context) -> Result<VolumeState, Error> {
    ctx.api
        .find_place()?
        .during("reading the place of the volume")?;
    let planned = ctx.api.planned_volume()?;
    complete(ctx, &planned.ok_or(Error::RetryLater(BUSY_AGAIN_MS))?)?;
    Ok(VolumeState::Ready)
}

/// See the `volumes` interface.
pub fn send(ctx: &Context) -> Result<VolumeReport, Error> {
    content::able(ctx)?;
    match ctx.api.volume()? {
        Ok(_) => {}
        Err(refusal) if refusal.is_no_volume() => return Ok(settled(VolumeState::Absent)),
        Err(refusal) => return Err(refusal.during("reading the volume")),
    }
    let state = match ctx.api.transfer()? {
        Moving::Under(progress) => VolumeState::Making(progress.unwrap_or_default()),
        Moving::Ended(Ok(())) => VolumeState::Ready,
        Moving::Ended(Err(refusal)) if refusal.is_immovable() => {
            VolumeState::Failed(refusal.message.clone())
        }
        Moving::Ended(Err(refusal)) => return Err(refusal.during("reading the content")),
        Moving::Nothing => {
            ctx.api.send_volume_content()?;
            VolumeState::Making(String::new())
        }
    };
    Ok(reported(state))
}

/// The result of running a holder's command.
enum Filled {
    /// The volume is ready, or its content comes.
    Is(VolumeState),
    /// The holder has no content and is removed, for this reason.
    Useless(String),
}

/// Runs the command of the holder, and makes the volume or begins the transfer of its content. A holder that is of no use is removed only while it is
/// certain that it has no content.
fn fill(ctx: &Context, volume: &Volume, never_ran: bool) -> Result<Filled, Error> {
    if let Err(refusal) = ctx.api.run_holder()? {
        // The creation of an interrupted call goes on.
        if refusal.is_not_found() {
            return Err(Error::RetryLater(BUSY_AGAIN_MS));
        }
        // An engine that is killed in a start may refuse every other one. The holder is empty then.
        if never_ran && (refusal.is_half_started() || refusal.says(&["already exists"])) {
            remove_holder(ctx)?;
            return Err(Error::RetryLater(BUSY_AGAIN_MS));
        }
        if never_ran && refusal.is_unable_to_run() {
            remove_holder(ctx)?;
            let why = format!("its image cannot run the command: {}", refusal.message);
            return Ok(Filled::Useless(why));
        }
        return Err(refusal.during("making the directory of the volume"));
    }
    let Some(planned) = ctx.api.planned_volume()? else {
        let why = "the engine does not hold the size of a disk, the node has less space than that, or the \
                   image has no `fallocate`";
        // One of an earlier call may have content whose place is no longer told.
        if !never_ran {
            return Err(Error::Unsupported(format!("volumes: {why}")));
        }
        remove_holder(ctx)?;
        return Ok(Filled::Useless(why.to_owned()));
    };
    if volume.fetched {
        ctx.api.fetch_volume_content()?;
        return Ok(Filled::Is(VolumeState::Making(String::new())));
    }
    complete(ctx, &planned)?;
    Ok(Filled::Is(VolumeState::Ready))
}

/// Makes the volume of the engine, whose content is complete.
fn complete(ctx: &Context, planned: &VolumeCreation) -> Result<(), Error> {
    ctx.api.make_volume()?.during("making the volume")?;
    let made = ctx.api.volume()?.during("reading the new volume")?;
    if is_at(&made, planned) {
        Ok(())
    } else {
        Err(Error::Conflict(
            "the volume exists with other content".to_owned(),
        ))
    }
}

/// Makes the volume with a holder of the first image that the engine has and that can run its command.
fn hold(ctx: &Context, volume: &Volume, images: &[String]) -> Result<VolumeReport, Error> {
    let info = ctx.api.info()?.during("reading the engine's storage")?;
    if !are_made(ctx, &Product::of(ctx)?, &info) {
        return Err(Error::Unsupported(
            "volumes: they need btrfs with quotas, and no user namespaces of Podman".to_owned(),
        ));
    }
    let purpose = if volume.fetched {
        Purpose::Fetched
    } else {
        Purpose::Volume
    };
    let mut useless = None;
    for image in images {
        let image = ctx.settings.image(image);
        let held = match ctx.settings.btrfs_quotas {
            BtrfsQuotas::Full => ctx.api.measure_layers(&image)?,
            BtrfsQuotas::Simple => Ok(()),
        };
        let held = match held {
            Ok(()) => ctx.api.make_holder(&image, purpose)?,
            Err(refusal) => Err(refusal),
        };
        match held {
            Ok(()) => {}
            // Another call made it meanwhile.
            Err(refusal) if refusal.is_name_taken() => {
                return Err(Error::RetryLater(BUSY_AGAIN_MS));
            }
            Err(refusal) if refusal.is_no_image() => continue,
            Err(refusal) if refusal.is_no_disk_limit() => {
                return Err(Error::Unsupported(format!("volumes: {}", refusal.message)));
            }
            Err(refusal) if refusal.is_final() => {
                let why = format!("the engine refuses to hold it: {}", refusal.message);
                return Ok(failed(&volume.id, &why));
            }
            Err(refusal) => return Err(refusal.during("creating the holder of the volume")),
        }
        match fill(ctx, volume, true)? {
            Filled::Is(state) => return Ok(reported(state)),
            Filled::Useless(why) => {
                log!(Warn, "{image} cannot hold volume {}: {why}", volume.id);
                useless = Some(why);
            }
        }
    }
    Err(Error::Unsupported(useless.map_or_else(
        || {
            "volumes: the engine has none of the images of the flavors, one of which holds a volume; put \
             one on the node"
                .to_owned()
        },
        |why| format!("volumes: no image of the flavors holds one: {why}"),
    )))
}

/// The words of the command of a proof.
const PROOF: [&str; 2] = ["wharf-limits-held", "wharf-limits-broken"];

/// See the `volumes` interface. A container without a volume exceeds the size of its own disk.
pub fn prove(ctx: &Context, images: &[String]) -> Result<Limits, Error> {
    let info = ctx.api.info()?.during("reading the engine's storage")?;
    if !ctx.settings.disk_limit.is_certain(disk_limit::of(&info)) {
        return Err(Error::Unsupported(
            "proofs: the engine limits no disks".to_owned(),
        ));
    }
    if info.driver_says("Backing Filesystem") == Some("xfs") {
        return Err(Error::Unsupported(
            "proofs: XFS has one error for a full disk and a full node".to_owned(),
        ));
    }
    // An interrupted call has left it.
    remove_holder(ctx)?;
    let mut breach = None;
    for image in images {
        let image = ctx.settings.image(image);
        let made = match ctx.settings.btrfs_quotas {
            BtrfsQuotas::Full => ctx.api.measure_layers(&image)?,
            BtrfsQuotas::Simple => Ok(()),
        };
        let made = match made {
            Ok(()) => ctx.api.make_holder(&image, Purpose::Proof)?,
            Err(refusal) => Err(refusal),
        };
        match made {
            Ok(()) => {}
            Err(refusal) if refusal.is_no_image() => continue,
            // The creation of an interrupted call came late.
            Err(refusal) if refusal.is_name_taken() => {
                return Err(Error::RetryLater(BUSY_AGAIN_MS));
            }
            // Docker that runs while the quotas are switched off fails so.
            Err(refusal)
                if refusal.is_no_disk_limit() || refusal.says(&["failed to limit qgroup"]) =>
            {
                let why = format!("the engine refuses sizes of disks: {}", refusal.message);
                return Ok(Limits::Broken(why));
            }
            Err(refusal) => return Err(refusal.during("creating the container of a proof")),
        }
        let ran = ctx.api.run_holder()?;
        remove_holder(ctx)?;
        let printed = match ran {
            Ok(printed) => printed,
            // So did its removal.
            Err(refusal) if refusal.is_not_found() => {
                return Err(Error::RetryLater(BUSY_AGAIN_MS));
            }
            Err(refusal) if refusal.is_unable_to_run() => continue,
            Err(refusal) => return Err(refusal.during("running the container of a proof")),
        };
        match PROOF.map(|word| printed.contains(word)) {
            [true, _] => return Ok(Limits::Held),
            // The storage may count less of this image than the engine tells, so that the disk has more room.
            [_, true] => breach = Some(image),
            _ => log!(
                Info,
                "{image} makes no proof: the node lacks space, or the image programs"
            ),
        }
    }
    let Some(image) = breach else {
        return Err(Error::Other(
            "no image of the flavors on the node makes a proof of its limits".to_owned(),
        ));
    };
    Ok(Limits::Broken(format!(
        "a container of {image} wrote 1728 MiB or more on a disk of 1 GiB"
    )))
}

/// Whether a volume has the content of this creation.
fn is_at(made: &EngineVolume, planned: &VolumeCreation) -> bool {
    let device = |options: &BTreeMap<String, String>| options.get("device").cloned();
    made.options.as_ref().and_then(device) == device(&planned.driver_opts)
}

/// See the `volumes` interface. The engine's volume goes first, because the engine removes a holder although
/// instances have the volume.
pub fn unmake(ctx: &Context) -> Result<VolumeReport, Error> {
    ctx.api.end_transfer()?;
    match ctx.api.remove_volume()? {
        Ok(()) => {}
        Err(refusal) if refusal.is_no_volume() => {}
        Err(refusal) if refusal.is_volume_in_use() => return Ok(settled(VolumeState::InUse)),
        Err(refusal) => return Err(refusal.during("removing the volume")),
    }
    remove_holder(ctx)?;
    Ok(settled(VolumeState::Absent))
}

fn remove_holder(ctx: &Context) -> Result<(), Error> {
    match ctx.api.remove_holder()? {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_not_found() => Ok(()),
        // Docker is removing it for another call.
        Err(refusal) if refusal.status == 409 => Err(Error::RetryLater(BUSY_AGAIN_MS)),
        Err(refusal) => Err(refusal.during("removing the holder of the volume")),
    }
}

/// See the `volumes` interface.
pub fn list(ctx: &Context) -> Result<Vec<ObservedVolume>, Error> {
    let volumes = ctx.api.volumes()?.during("listing the volumes")?;
    let holders = ctx
        .api
        .holders()?
        .during("listing the holders of volumes")?;
    let id = |labels| label(labels, VOLUME).map(str::to_owned);
    let mut states = BTreeMap::new();
    for held in holders.iter().filter_map(|holder| id(&holder.labels)) {
        states.insert(held, VolumeState::Making(String::new()));
    }
    for volume in volumes.volumes.iter().flatten() {
        let Some(id) = id(&volume.labels) else {
            continue;
        };
        let state = match states.get(&id) {
            Some(_) => VolumeState::Ready,
            None => VolumeState::Failed("the container that held it is gone".to_owned()),
        };
        states.insert(id, state);
    }
    let observed = |(id, state)| ObservedVolume { id, state };
    Ok(states.into_iter().map(observed).collect())
}

/// Returns the first volume of an instance that the engine does not have. Engines would make it, without a
/// size.
pub fn missing<'a>(ctx: &Context, spec: &'a Spec) -> Result<Option<&'a Mount>, Error> {
    for mount in &spec.volumes {
        match ctx.api.mounted(&mount.volume)? {
            Ok(_) => {}
            Err(refusal) if refusal.is_no_volume() => return Ok(Some(mount)),
            Err(refusal) => return Err(refusal.during("reading a volume")),
        }
    }
    Ok(None)
}

fn settled(state: VolumeState) -> VolumeReport {
    VolumeReport {
        state,
        again_ms: None,
    }
}

/// A state that may be on its way.
fn reported(state: VolumeState) -> VolumeReport {
    let again_ms = matches!(state, VolumeState::Making(_)).then_some(BUSY_AGAIN_MS);
    VolumeReport { state, again_ms }
}

fn failed(id: &str, why: &str) -> VolumeReport {
    log!(Warn, "volume {id}: {why}");
    settled(VolumeState::Failed(why.to_owned()))
}

impl Refusal {
    /// The engine has no such volume.
    fn is_no_volume(&self) -> bool {
        self.status == 404 || self.says(&["no such volume"])
    }

    /// The image has no shell. Docker and Podman differ in the status.
    fn is_unable_to_run(&self) -> bool {
        self.is_final()
            || self.says(&["executable file not found", "no such file or directory"])
                && self.says(&["/bin/sh"])
            || self.says(&["exec format error"])
    }

    /// A container has the volume, also one that is stopped.
    fn is_volume_in_use(&self) -> bool {
        self.status == 409 || self.says(&["volume is in use", "is being used"])
    }
}
