//! Snapshots. The engine commits a container: it copies all data since the container's image into an image of
//! its own, which has its name once it is complete. The processes stand still meanwhile.
//!
//! - A clone is created from that image in place of the blueprint's.
//! - A restored instance gets a new container from it, by the names of [`grow`]: `…-part` is created, and becomes
//!   `…-whole` at once. Only then is the old container removed.
//!
//! Nothing stands still in the copy of a stopped container, so dockerd does not tell whether one is under way. Such
//! a copy gets a name of its own. It becomes the snapshot only if the container has not been started since.
//!
//! An engine that is killed in a copy leaves the processes standing, and no image. The next call lets them go on.

use crate::api::Refusal;
use crate::api::model::{ImageSummary, Info, label};
use crate::context::Context;
use crate::ensure::Replaced;
use crate::found::{self, Found, is_called};
use crate::product::Product;
use crate::settings::{BtrfsQuotas, DiskLimit};
use crate::{content, grow, names, probe};
use std::collections::BTreeMap;
use wharf_guest::{
    Complete, During, Error, GIB, ObservedSnapshot, Phase, Report, Shortage, SnapshotKind,
    SnapshotReport, SnapshotState, Spec, Tag, Target, log,
};

/// Delay while the engine copies, ms.
const LOOK_AGAIN_MS: u32 = 200;
/// The longest such delay, ms.
const LONG_MS: u32 = 10_000;

/// How the node takes snapshots. An engine that cannot limit processes cannot hold them for a copy either.
pub fn kind(info: &Info) -> SnapshotKind {
    if probe::takes_no_limits(info) {
        SnapshotKind::None
    } else {
        SnapshotKind::Copied
    }
}

/// A complete snapshot.
struct Copy {
    complete: Complete,
    /// Whether limits of disks count the data of images.
    is_counted: bool,
    /// The limit of the disk that it is of.
    disk_gib: Option<u64>,
    /// The size of the image below it.
    image_bytes: u64,
}

/// What is told of the snapshot of the call; none if it is not complete.
pub fn complete(ctx: &Context) -> Result<Option<Complete>, Error> {
    Ok(copy(ctx)?.map(|copy| copy.complete))
}

/// The snapshot of the call, once it is complete.
fn copy(ctx: &Context) -> Result<Option<Copy>, Error> {
    let image = match ctx.api.snapshot()? {
        Ok(image) => image,
        Err(refusal) if refusal.is_absent() => return Ok(None),
        Err(refusal) => return Err(refusal.during("reading the snapshot")),
    };
    let layers = match ctx.api.snapshot_layers()? {
        Ok(layers) => layers,
        Err(refusal) if refusal.is_absent() => return Ok(None),
        Err(refusal) => return Err(refusal.during("reading the size of the snapshot")),
    };
    let all = layers
        .iter()
        .fold(0u64, |sum, layer| sum.saturating_add(layer.size));
    let image_bytes = image.image_bytes().unwrap_or(0);
    Ok(Some(Copy {
        complete: Complete {
            bytes: all.saturating_sub(image_bytes),
            clonable: image.is_clonable(),
        },
        is_counted: image.is_counted(),
        disk_gib: image.label(names::DISK).and_then(grow::gib),
        image_bytes,
    }))
}

/// See the `snapshots` interface.
pub fn take(ctx: &Context, target: &Target) -> Result<SnapshotReport, Error> {
    let found = found::find(ctx, &target.tag, false)?;
    let is_copied = match &found {
        Some(found) => is_copied(ctx, found)?,
        None => false,
    };
    match copy(ctx)? {
        Some(copy) if !is_copied => return Ok(settled(SnapshotState::Ready(copy.complete))),
        // The engine names the image before it lets the processes go on.
        Some(_) => return Ok(copying()),
        None if is_copied => return Ok(copying()),
        None => {}
    }
    let found = found.ok_or(Error::NotFound)?;
    if !matches!(
        found.phase(),
        Phase::Ready | Phase::Booting | Phase::Stopped(_)
    ) {
        return Err(Error::Conflict("the instance never ran".to_owned()));
    }
    if let Some(path) = grow::elsewhere(&found, &target.volumes) {
        return Ok(failed(target, format!("{path} is on a volume")));
    }
    let last_start = last_start(ctx, &found)?;
    if last_start.is_some() && name_stopped(ctx, &target.tag)? {
        return Ok(
            copy(ctx)?.map_or_else(copying, |copy| settled(SnapshotState::Ready(copy.complete)))
        );
    }
    let below = ctx.api.measure_below(&found.details.image)?;
    let below = below.during("reading the size of the image")?;
    let bytes = match measured(ctx, target, &found.name, below)? {
        Ok(bytes) => bytes,
        Err(why) => return Ok(failed(target, why)),
    };
    match ctx.api.commit(&found.name, last_start)? {
        None => {
            let mut report = copying();
            // Each call measures a stopped one again. A copy takes several times as long.
            let again_ms = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
            report.again_ms = Some(again_ms.clamp(LOOK_AGAIN_MS, LONG_MS));
            Ok(report)
        }
        Some(Ok(())) if last_start.is_some() => Ok(copying()),
        Some(Ok(())) => Ok(
            copy(ctx)?.map_or_else(copying, |copy| settled(SnapshotState::Ready(copy.complete)))
        ),
        Some(Err(refusal)) if refusal.is_no_container() => Err(Error::NotFound),
        Some(Err(refusal)) if refusal.is_no_space() || refusal.is_final() => {
            Ok(failed(target, refusal.message.clone()))
        }
        Some(Err(refusal)) => Err(refusal.during("copying the data")),
    }
}

/// The size of a copy, in which sparse files become full, or why it would be larger than a disk can be. A snapshot has
/// the size of the image `below` it.
fn measured(
    ctx: &Context,
    target: &Target,
    name: &str,
    below: Option<u64>,
) -> Result<Result<u64, String>, Error> {
    let details = ctx.api.measure(name)?;
    let details = details.during("reading the size of the disk")?;
    let size = |size: Option<i64>| size.and_then(|size| u64::try_from(size).ok());
    let bytes = size(details.size_rw)
        .ok_or_else(|| Error::Other("the engine tells no size of the disk".to_owned()))?;
    // The bytes that `limit` in `requests.toml` allows beside the size. Deleted files of the image make room too.
    let is_counted = details.graph_driver.is_some_and(|of| of.counts_image());
    let image = if !is_counted || ctx.settings.btrfs_quotas != BtrfsQuotas::Full {
        0
    } else if let Some(below) = below {
        below
    } else {
        let all = size(details.size_root_fs).unwrap_or(0);
        // Podman tells the size of the image alone.
        let own = if Product::of(ctx)?.is_podman() {
            0
        } else {
            bytes
        };
        all.saturating_sub(own)
    };
    let most = u64::from(target.size.disk_size_gib) * GIB + (64 << 20);
    let most = most.saturating_add(image.saturating_add(image / 16));
    Ok(if bytes > most {
        Err(format!(
            "its files would take {} GiB, more than its disk has: sparse files become full",
            bytes.div_ceil(GIB)
        ))
    } else {
        Ok(bytes)
    })
}

/// The time of the last start of a stopped container. Podman holds a container while it copies it.
fn last_start<'a>(ctx: &Context, found: &'a Found) -> Result<Option<&'a str>, Error> {
    let is_stopped = matches!(found.phase(), Phase::Stopped(_)) && !Product::of(ctx)?.is_podman();
    let time = found.details.state.started_at.as_str();
    Ok((is_stopped && !time.is_empty()).then_some(time))
}

/// Names the complete copy of a stopped container as the snapshot; returns whether there is one. Another copy, which an
/// earlier process of Wharf began, may be under way, and cannot replace it.
fn name_stopped(ctx: &Context, tag: &Tag) -> Result<bool, Error> {
    let image = match ctx.api.stopped_copy()? {
        Ok(image) => image,
        Err(refusal) if refusal.is_absent() => return Ok(false),
        Err(refusal) => return Err(refusal.during("reading the copy")),
    };
    // The container is read after its copy is complete.
    let found = found::find(ctx, tag, false)?.ok_or(Error::NotFound)?;
    let now = last_start(ctx, &found)?;
    if now.is_none() || now != image.last_start() {
        return Ok(false);
    }
    let named = ctx.api.name_stopped_copy()?;
    named.during("naming the snapshot")?;
    unname_stopped(ctx)?;
    Ok(true)
}

/// Removes the other name of the copy of a stopped container, and a copy without the snapshot's name. An image with
/// two names could lose one while a container is made from it.
fn unname_stopped(ctx: &Context) -> Result<(), Error> {
    match ctx.api.drop_stopped_copy()? {
        Err(refusal) if !refusal.is_absent() => Err(refusal.during("removing a copy")),
        _ => Ok(()),
    }
}

/// Whether the engine copies a container now. One that an interrupted copy has left standing goes on.
///
/// Podman answers no question about a container while it copies it. Docker knows the last pauses since its own start,
/// and completes a copy whose client has gone. A copy that may be under way counts as one for a day.
pub fn is_copied(ctx: &Context, found: &Found) -> Result<bool, Error> {
    stands_still(ctx, found, true)
}

/// Does what [`is_copied`] does. The answer is `in_doubt` if the engine may have forgotten the pause: on a busy one, its
/// last events never cover a day.
fn stands_still(ctx: &Context, found: &Found, in_doubt: bool) -> Result<bool, Error> {
    if !found.is_paused() {
        return Ok(false);
    }
    let step = "reading why the processes stand still";
    if !Product::of(ctx)?.is_podman() && ctx.api.may_copy(&found.name, in_doubt)?.during(step)? {
        return Ok(true);
    }
    log!(
        Warn,
        "{}: an interrupted copy has left it standing",
        found.name
    );
    match ctx.api.unpause(&found.name)? {
        Ok(()) => Ok(false),
        Err(refusal) if refusal.is_running() || refusal.is_not_found() => Ok(false),
        Err(refusal) => Err(refusal.during("letting the processes go on")),
    }
}

/// See the `snapshots` interface. The engine keeps an image from which a container is made. A copy that is not wanted
/// is no reason to let an instance stand still in doubt; what it becomes is removed as one without a row.
pub fn drop(ctx: &Context, instance: &Tag) -> Result<SnapshotReport, Error> {
    let is_copied = match found::find(ctx, instance, false)? {
        Some(found) => stands_still(ctx, &found, false)?,
        None => false,
    };
    unname_stopped(ctx)?;
    // Of two copies of a stopped container, the later one has taken the name of the earlier.
    if !Product::of(ctx)?.is_podman() {
        content::end_send(ctx)?;
        let pruned = ctx.api.prune_copies()?;
        pruned.during("removing copies without a name")?;
    }
    match ctx.api.drop_snapshot()? {
        Err(refusal) if refusal.is_needed() => Ok(settled(SnapshotState::InUse)),
        Err(refusal) if !refusal.is_absent() => Err(refusal.during("removing the snapshot")),
        // It may be the copy that is under way.
        _ if is_copied => Ok(copying()),
        _ => Ok(settled(SnapshotState::Absent)),
    }
}

/// Whether the engine has the snapshot of the call.
///
/// # Errors
/// [`Error::Insufficient`] if the disk would be too small for it.
pub fn fits(ctx: &Context, spec: &Spec) -> Result<bool, Error> {
    let Some(copy) = copy(ctx)? else {
        return Ok(false);
    };
    let is_part_of_size = copy.is_counted
        && ctx.settings.btrfs_quotas == BtrfsQuotas::Full
        && ctx.settings.disk_limit != DiskLimit::Off;
    let size = u64::from(spec.size.disk_size_gib);
    let needed = copy.complete.bytes.div_ceil(GIB);
    // The engine counts a changed file of the image once more, so a full disk has more bytes than its size.
    let was_on_one = copy.disk_gib.is_some_and(|disk| disk <= size)
        && copy.complete.bytes <= limit_bytes(size, copy.image_bytes);
    if is_part_of_size && needed > size && !was_on_one {
        return Err(Error::Insufficient(vec![Shortage {
            field: "disk_size_gib".into(),
            requested: needed,
            available: size,
        }]));
    }
    Ok(true)
}

/// The limit of a disk with an image, as `requests.toml` sets it.
fn limit_bytes(size_gib: u64, image_bytes: u64) -> u64 {
    let image = image_bytes.saturating_add(image_bytes / 16);
    let size = size_gib.saturating_mul(GIB);
    size.saturating_add(image).saturating_add(64 << 20)
}

/// See the `snapshots` interface.
pub fn restore(ctx: &Context, spec: &Spec, id: &str) -> Result<Report, Error> {
    let listed = found::listed(ctx, &spec.tag)?;
    let named = |name: &str| listed.iter().find(|one| is_called(one, name));
    let (part, whole) = (names::part(&spec.tag), names::whole(&spec.tag));
    if named(&whole).is_some() {
        let old = listed
            .iter()
            .find(|one| !is_called(one, &part) && !is_called(one, &whole));
        grow::take_over(ctx, spec, old.map(|old| old.id.as_str()))?;
    }
    let old = found::find(ctx, &spec.tag, false)?.ok_or(Error::NotFound)?;
    if old.is_up() || old.is_new_from(&names::snapshot(id)) {
        return Ok(Report::settled(spec.generation, old.phase()));
    }
    if let Some(path) = grow::elsewhere(&old, &spec.volumes) {
        let why = format!("{path} is on a volume, and would be lost");
        return Err(Error::Conflict(why));
    }
    if !fits(ctx, spec)? {
        return Err(Error::invalid("snapshot", "the node does not have it"));
    }
    grow::give_up(ctx)?;
    match grow::make(ctx, spec, Some(&old), Replaced::Restored)? {
        Some(report) => Ok(report),
        None => grow::replace(ctx, spec, &old.name),
    }
}

/// See the `snapshots` interface. The data of the image below a snapshot is included.
pub fn list(ctx: &Context) -> Result<Vec<ObservedSnapshot>, Error> {
    let images = ctx.api.own_images()?.during("listing the snapshots")?;
    let mut observed = BTreeMap::new();
    // A snapshot takes the place of an incomplete one with its id.
    for suffix in [":stopped", ":1"] {
        for image in &images {
            let tags = image.repo_tags.iter().flatten();
            for id in tags.filter_map(|tag| tag.strip_prefix(names::SNAPSHOT)?.strip_suffix(suffix))
            {
                let Some(instance) = instance(image) else {
                    continue;
                };
                let state = if suffix == ":1" {
                    SnapshotState::Ready(Complete {
                        bytes: image.size,
                        clonable: image.is_clonable(),
                    })
                } else {
                    SnapshotState::Copying(String::new())
                };
                let id = id.to_owned();
                observed.insert(
                    id.clone(),
                    ObservedSnapshot {
                        id,
                        instance,
                        state,
                    },
                );
            }
        }
    }
    Ok(observed.into_values().collect())
}

/// The instance that an image is a copy of.
fn instance(image: &ImageSummary) -> Option<Tag> {
    Some(Tag {
        instance: label(&image.labels, names::INSTANCE)?.to_owned(),
        incarnation: label(&image.labels, names::INCARNATION)?.parse().ok()?,
    })
}

pub(crate) fn settled(state: SnapshotState) -> SnapshotReport {
    SnapshotReport {
        state,
        again_ms: None,
    }
}

fn copying() -> SnapshotReport {
    SnapshotReport {
        state: SnapshotState::Copying(String::new()),
        again_ms: Some(LOOK_AGAIN_MS),
    }
}

fn failed(target: &Target, why: String) -> SnapshotReport {
    log!(
        Warn,
        "a snapshot of instance {}: {why}",
        target.tag.instance
    );
    settled(SnapshotState::Failed(why))
}

impl Refusal {
    /// The engine has no such image.
    fn is_absent(&self) -> bool {
        self.status == 404 || self.is_no_image()
    }

    /// A container is made from the image, or another image is.
    fn is_needed(&self) -> bool {
        self.status == 409 || self.says(&["image is in use", "image used by"])
    }

    /// The container does not stand still. Docker and Podman differ in the status.
    fn is_running(&self) -> bool {
        self.status == 409 || self.says(&["is not paused"])
    }
}
