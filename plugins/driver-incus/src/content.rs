//! Content that comes from elsewhere or leaves: moves between nodes without a common cluster, and backups of snapshots.
//!
//! The engine makes an image of a snapshot, or of a stopped instance, and the host reads the files of the image. On the
//! way back, the host makes an image, and the instance is created from it. Each image names the snapshot or the
//! instance, so that a later call finds it. Only a complete image is listed; a killed engine leaves nothing of another
//! one. The operation that makes an image names nothing, so a call waits for the one of any image.

use crate::api::model::Image;
use crate::api::{Making, Outcome, Refusal, Reply};
use crate::context::Context;
use crate::ensure::{self, unfinished};
use crate::found::{self, Found};
use crate::{digest, forward, id_range, names, owner_network, phase, snapshots};
use std::collections::BTreeSet;
use wharf_guest::{
    During, Error, Moving, Phase, Report, SnapshotReport, SnapshotState, Spec, Tag, Target, log,
};

/// Delay while the engine or the host is at work, ms.
const AGAIN_MS: u32 = 1_000;
/// Delay while a member of the cluster is down, ms.
const DOWN_AGAIN_MS: u32 = 5_000;
/// The description of images of flavors alone fits content from elsewhere.
const NO_COPIES: &str = "the content of this instance: its image has no clones";

/// The owner of an image.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    Instance(&'a Tag),
    Snapshot(&'a str),
}

/// The state of an image.
enum State {
    Made(Image),
    Making,
    Absent,
}

/// See the `content` interface. Someone may have started the instance by hand since an earlier image was made.
pub fn offer(ctx: &Context, target: &Target) -> Result<Report, Error> {
    let found = found::find(ctx, &target.tag)?.ok_or(Error::NotFound)?;
    if found.is_up() {
        return Ok(Report::settled(target.generation, found.phase()));
    }
    if !snapshots::is_clonable(&found.details.config) {
        return Err(Error::Unsupported(NO_COPIES.into()));
    }
    let of = Of::Instance(&target.tag);
    match state(ctx, of)? {
        State::Made(image) if is_newer(&image, &found) => {
            ctx.api.offer_content(&image.fingerprint)?;
            Ok(Report::settled(target.generation, found.phase()))
        }
        State::Made(_) => {
            forget(ctx, of)?;
            Err(Error::RetryLater(AGAIN_MS))
        }
        State::Making => Err(Error::RetryLater(AGAIN_MS)),
        State::Absent => match ctx.api.publish()? {
            Ok(_) => Err(Error::RetryLater(AGAIN_MS)),
            Err(refusal) if refusal.is_busy() => Err(Error::RetryLater(AGAIN_MS)),
            Err(refusal) => Err(refusal.during("making an image of the instance")),
        },
    }
}

/// Whether an image was made after the last start. Parts of a second have no fixed length.
fn is_newer(image: &Image, found: &Found) -> bool {
    let second = |time: &str| time.split(['.', 'Z']).next().unwrap_or_default().to_owned();
    second(&image.uploaded_at) > second(&found.details.last_used_at)
}

/// See the `content` interface.
pub fn fetch(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    ensure::supported(spec)?;
    if let Some(found) = found::find(ctx, &spec.tag)? {
        return created(ctx, spec, &found);
    }
    let of = Of::Instance(&spec.tag);
    match ctx.api.transfer()? {
        Moving::Under(progress) => return Ok(moving(spec, progress)),
        Moving::Ended(Ok(())) => return Ok(moving(spec, None)),
        Moving::Ended(Err(refusal)) => {
            return Err(if refusal.is_immovable() {
                Error::Unsupported(refusal.message.clone())
            } else {
                refusal.during("copying the content")
            });
        }
        Moving::Nothing => {}
    }
    match state(ctx, of)? {
        State::Made(image) => create(ctx, spec, &image),
        State::Making => Ok(moving(spec, None)),
        State::Absent => {
            let server = ctx.api.server()?.during("reading the architecture")?;
            ctx.api
                .fetch_content(&server.environment.kernel_architecture)?;
            Ok(moving(spec, None))
        }
    }
}

/// Creates the instance from the image.
fn create(ctx: &Context, spec: &Spec, image: &Image) -> Result<Report, Error> {
    owner_network::ensure(ctx, &spec.network)?;
    let made = ctx.api.create_fetched(
        &digest::of(spec),
        &image.fingerprint,
        image.size,
        !spec.fetched,
    )?;
    match made {
        Ok(_) => Ok(moving(spec, None)),
        Err(refusal) if refusal.is_address_taken() => Err(Error::held("lan_ipv4")),
        Err(refusal) if refusal.is_name_taken() || refusal.is_busy() => Ok(moving(spec, None)),
        Err(_) if owner_network::has_gone(ctx)? => Err(Error::RetryLater(AGAIN_MS)),
        Err(refusal) if refusal.is_final() || refusal.is_unpacking() => {
            forget(ctx, Of::Instance(&spec.tag))?;
            Err(Error::Unsupported(format!(
                "this content: {}",
                refusal.message
            )))
        }
        Err(refusal) => Err(refusal.during("creating the instance")),
    }
}

/// Completes an instance that has been created.
fn created(ctx: &Context, spec: &Spec, found: &Found) -> Result<Report, Error> {
    if !phase::is_complete(&found.details) {
        unfinished(ctx, spec, &found.name)?;
        return Ok(moving(spec, None));
    }
    // A member may be down for good: an instance comes back from a backup then.
    if !is_forgotten(ctx, Of::Instance(&spec.tag))? {
        log!(
            Warn,
            "instance {}: a member of the cluster is down, so that the image of its content stays until its deletion",
            spec.tag.instance
        );
    }
    if matches!(found.phase(), Phase::Stopped(_)) {
        if let Some(again_ms) = id_range::compare(ctx, &spec.tag, found, &BTreeSet::new())? {
            return Err(Error::RetryLater(again_ms));
        }
        forward::publish(ctx, spec)?;
    }
    log!(
        Info,
        "instance {} has come from elsewhere",
        spec.tag.instance
    );
    Ok(Report::settled(spec.generation, found.phase()))
}

/// See the `content` interface.
pub fn send(ctx: &Context, id: &str) -> Result<SnapshotReport, Error> {
    let snapshot = match ctx.api.snapshot()? {
        Ok(snapshot) if snapshot.size >= 0 => snapshot,
        Ok(_) => return Ok(snapshots::settled(SnapshotState::Absent)),
        Err(refusal) if refusal.is_not_found() => {
            return Ok(snapshots::settled(SnapshotState::Absent));
        }
        Err(refusal) => return Err(refusal.during("reading the snapshot")),
    };
    if !snapshots::is_clonable(&snapshot.config) {
        return Ok(snapshots::settled(SnapshotState::Failed(NO_COPIES.into())));
    }
    let of = Of::Snapshot(id);
    match ctx.api.transfer()? {
        Moving::Under(progress) => return Ok(sending(progress)),
        Moving::Ended(Ok(())) => {
            // The end of the transfer is told once.
            if let Err(error) = forget(ctx, of) {
                log!(Warn, "an image stays until its snapshot goes: {error:?}");
            }
            let bytes = snapshots::noted(&snapshot.config, id).unwrap_or_default();
            return Ok(snapshots::settled(snapshots::ready(
                &snapshot.config,
                bytes,
            )));
        }
        Moving::Ended(Err(refusal)) if refusal.is_immovable() => {
            let failed = SnapshotState::Failed(refusal.message.clone());
            return Ok(snapshots::settled(failed));
        }
        Moving::Ended(Err(refusal)) => return Err(refusal.during("reading the content")),
        Moving::Nothing => {}
    }
    match state(ctx, of)? {
        State::Made(image) => ctx.api.send_content(&image.fingerprint)?,
        State::Making => {}
        State::Absent => match ctx.api.publish_snapshot()? {
            Ok(_) => {}
            Err(refusal) if refusal.is_busy() => {}
            Err(refusal) if refusal.is_not_found() => {
                return Ok(snapshots::settled(SnapshotState::Absent));
            }
            Err(refusal) => return Err(refusal.during("making an image of the snapshot")),
        },
    }
    Ok(sending(None))
}

/// Ends the transfer of the call, and deletes the images of an instance or a snapshot.
///
/// # Errors
/// When the engine refuses, and [`Error::RetryLater`] while it makes an image if `is_alone`: it may be one of them.
pub fn end(ctx: &Context, of: Of, is_alone: bool) -> Result<(), Error> {
    ctx.api.end_transfer()?;
    if is_alone && matches!(making(ctx)?, Making::Goes) {
        return Err(Error::RetryLater(AGAIN_MS));
    }
    forget(ctx, of)
}

/// Deletes the images of an instance or a snapshot. All members of a cluster take part.
///
/// # Errors
/// When the engine refuses, and [`Error::RetryLater`] while it is at work or a member is down.
pub fn forget(ctx: &Context, of: Of) -> Result<(), Error> {
    if is_forgotten(ctx, of)? {
        Ok(())
    } else {
        Err(Error::RetryLater(DOWN_AGAIN_MS))
    }
}

/// Does what [`forget`] does. False while a member is down.
fn is_forgotten(ctx: &Context, of: Of) -> Result<bool, Error> {
    for image in images(ctx, of)? {
        match ctx.api.delete_image(&image.fingerprint)? {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Unknown) => return Err(Error::RetryLater(AGAIN_MS)),
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) if refusal.is_without_member() => return Ok(false),
            Err(refusal) => return Err(refusal.during("deleting the image")),
        }
    }
    Ok(true)
}

/// The state of the image. It may become complete between the two looks.
fn state(ctx: &Context, of: Of) -> Result<State, Error> {
    let making = making(ctx)?;
    let image = images(ctx, of)?.into_iter().next();
    match (image, making) {
        (Some(image), _) => Ok(State::Made(image)),
        (None, Making::Goes) => Ok(State::Making),
        (None, Making::Failed(why)) => Err(Error::Other(format!("making an image: {why}"))),
        (None, Making::Nothing) => Ok(State::Absent),
    }
}

fn making(ctx: &Context) -> Result<Making, Error> {
    let making: Reply<Making> = ctx.api.making(&ctx.settings.member)?;
    making.map_err(|refusal: Refusal| refusal.during("listing the operations"))
}

fn images(ctx: &Context, of: Of) -> Result<Vec<Image>, Error> {
    let (listed, name) = match of {
        Of::Instance(tag) => (
            ctx.api.images_of_instance()?,
            names::instance(ctx.installation, tag),
        ),
        Of::Snapshot(id) => (ctx.api.images_of_snapshot()?, names::of_snapshot(id)),
    };
    let mut images = listed.during("listing the images")?;
    images.retain(|image| image.properties.get(names::CONTENT) == Some(&name));
    Ok(images)
}

fn sending(progress: Option<String>) -> SnapshotReport {
    SnapshotReport {
        state: SnapshotState::Copying(progress.unwrap_or_default()),
        again_ms: Some(AGAIN_MS),
    }
}

fn moving(spec: &Spec, progress: Option<String>) -> Report {
    let phase = Phase::Elsewhere(progress.unwrap_or_default());
    Report::again(spec.generation, phase, AGAIN_MS)
}
