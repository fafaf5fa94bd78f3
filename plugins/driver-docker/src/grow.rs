//! Growth of the disk of a stopped instance. No engine changes the disk of an existing container,
//! so a new container replaces it:
//!
//! 1. `…-part` is created with the larger disk, and the host copies all content of the old one to
//!    it ([`crate::api::transfer`]). Files are copied whole, with owners, hard links and capabilities,
//!    over those of the image. So the result does not depend on the engine's view of changes.
//! 2. After the copy, it is renamed to `…-whole`. Only then is the old container removed.
//! 3. The new container gets the instance's name.
//!
//! The names record the progress, so an interruption at any point is safe. A `…-part` without an
//! active transfer of this host is removed and created again; a `…-whole` is the instance. No
//! container runs before it has the instance's name.

use crate::api::Reply;
use crate::api::model::label;
use crate::context::Context;
use crate::ensure::{Options, Replaced, create, image};
use crate::found::{self, Found, is_called};
use crate::product::Product;
use crate::pull::Pull;
use crate::settings::{DiskLimit, Lxcfs};
use crate::vm::disk_size_of;
use crate::{lxcfs, names, network, volumes};
use wharf_guest::{
    During, Error, Mount, Moving, Phase, Report, ResourceType, Shortage, Size, Spec, Target, log,
};

/// Attempts to create in one call: with the network, with the image, without lxcfs, without a limit, and after
/// a conflicting container.
const ROUNDS: u32 = 6;
/// Delay while content is copied, ms.
const LOOK_AGAIN_MS: u32 = 500;
/// Delay after a replacement that the engine did not carry out, ms.
const TAKE_OVER_AGAIN_MS: u32 = 5_000;

/// Returns whether the disk of a stopped container must grow before the next start, or has a complete replacement.
///
/// # Errors
/// When the engine does not list the instance's containers.
pub fn is_due(ctx: &Context, found: &Found, target: &Target) -> Result<bool, Error> {
    if target.resource_type != ResourceType::Container {
        return Ok(false);
    }
    if limit_to_grow(found, &target.size, target.resource_type) {
        return Ok(true);
    }
    let whole = names::whole(&target.tag);
    let listed = found::listed(ctx, &target.tag)?;
    Ok(listed.iter().any(|one| is_called(one, &whole)))
}

/// Only a limited disk has a size. A virtual machine's disk is a file and does not change.
fn limit_to_grow(found: &Found, size: &Size, what: ResourceType) -> bool {
    what == ResourceType::Container
        && found
            .label(names::DISK)
            .and_then(gib)
            .is_some_and(|limit| limit < u64::from(size.disk_size_gib))
}

/// `10G` → 10
pub(crate) fn gib(limit: &str) -> Option<u64> {
    limit.strip_suffix('G')?.parse().ok()
}

/// See the `driver` interface.
pub fn grow(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    let tag = &spec.tag;
    let (part, whole) = (names::part(tag), names::whole(tag));
    let listed = found::listed(ctx, tag)?;
    let is_one_of = |names: &[&str]| {
        let one = |summary| names.iter().any(|name| is_called(summary, name));
        listed.iter().any(one)
    };
    let old = listed
        .iter()
        .find(|one| !is_called(one, &part) && !is_called(one, &whole));
    if is_one_of(&[&whole]) {
        return take_over(ctx, spec, old.map(|old| old.id.as_str()));
    }
    let old = old.ok_or(Error::NotFound)?;
    let Some(found) = found::by_id(ctx, tag, &old.id, false)? else {
        return Err(Error::RetryLater(LOOK_AGAIN_MS));
    };
    if found.is_up() {
        return Ok(Report::settled(spec.generation, found.phase()));
    }
    if !limit_to_grow(&found, &spec.size, spec.resource_type) {
        give_up(ctx)?;
        return Ok(Report::settled(spec.generation, found.phase()));
    }
    if let Some(path) = elsewhere(&found, &spec.volumes) {
        return Err(keeps(&found, spec, &format!("{path} is on a volume")));
    }
    if !Product::of(ctx)?.moves_content() {
        return Err(keeps(&found, spec, "this engine does not copy all content"));
    }
    // A container of an earlier call may have a different size.
    let wanted = disk_size_of(&spec.size, spec.resource_type);
    let is_right = |one| label(one, names::DISK) == Some(wanted.as_str());
    let begun = listed.iter().find(|one| is_called(one, &part));
    if begun.is_some_and(|one| !is_right(&one.labels)) {
        give_up(ctx)?;
        return Err(Error::RetryLater(0));
    }
    let moved = ctx.api.transfer().or_else(|error| {
        give_up(ctx)?;
        Err(error)
    })?;
    match moved {
        Moving::Under(progress) => Ok(growing(spec, progress.unwrap_or_default())),
        Moving::Ended(Ok(())) => replace(ctx, spec, &old.id),
        Moving::Ended(Err(refusal)) => {
            give_up(ctx)?;
            Err(if refusal.is_no_space() || refusal.is_immovable() {
                keeps(&found, spec, &refusal.message)
            } else {
                refusal.during("copying the content")
            })
        }
        Moving::Nothing => {
            if begun.is_some() {
                removed(ctx.api.remove_part()?)?;
            }
            let from = found.label(names::DISK).unwrap_or_default();
            if let Some(report) = make(ctx, spec, Some(&found), Replaced::Small(from))? {
                return Ok(report);
            }
            ctx.api.begin_transfer(&old.id)?;
            Ok(growing(spec, String::new()))
        }
    }
}

/// Removes an incomplete replacement.
///
/// # Errors
/// When the engine fails to remove it.
pub fn give_up(ctx: &Context) -> Result<(), Error> {
    ctx.api.end_transfer()?;
    removed(ctx.api.remove_part()?)
}

/// The path in a container whose content is on no disk of its own and no volume of the instance. It would not
/// be copied, and would be removed with the container.
pub(crate) fn elsewhere<'a>(found: &'a Found, volumes: &[Mount]) -> Option<&'a str> {
    let is_own = |name: &str| {
        let id = name.strip_prefix(volumes::PREFIX);
        id.is_some_and(|id| volumes.iter().any(|mount| mount.volume == id))
    };
    let mut mounts = found.details.mounts.iter().flatten();
    let other = mounts.find(|mount| {
        !mount.source.starts_with(lxcfs::DIRECTORY) && !mount.name.as_deref().is_some_and(is_own)
    })?;
    Some(&other.destination)
}

/// Reports that the disk can never grow.
fn keeps(found: &Found, spec: &Spec, why: &str) -> Error {
    log!(
        Warn,
        "the disk of instance {} cannot grow: {why}",
        spec.tag.instance
    );
    Error::Insufficient(vec![Shortage {
        field: "disk_size_gib".into(),
        requested: spec.size.disk_size_gib.into(),
        available: found.label(names::DISK).and_then(gib).unwrap_or(0),
    }])
}

/// Creates the replacement of a container; returns a report if that needs another call.
pub(crate) fn make(
    ctx: &Context,
    spec: &Spec,
    old: Option<&Found>,
    replaced: Replaced<'_>,
) -> Result<Option<Report>, Error> {
    let is_restored = replaced == Replaced::Restored;
    let grows = matches!(replaced, Replaced::Small(_));
    let cannot = |why: &str| match old {
        Some(old) if grows => keeps(old, spec, why),
        _ if is_restored => Error::invalid("snapshot", why),
        _ => Error::Unsupported(why.to_owned()),
    };
    let Some(image) = image(ctx, spec) else {
        return Err(cannot("its flavor no longer has an image"));
    };
    let mut options = Options {
        disk_limit: grows || ctx.settings.disk_limit != DiskLimit::Off,
        kvm: false,
        // The engine may be unable to start a container with lxcfs.
        own_view: ctx.settings.lxcfs != Lxcfs::Off
            && old.is_none_or(|old| old.label(names::VIEW) != Some(lxcfs::MACHINE)),
    };
    if let Some(mount) = volumes::missing(ctx, spec)? {
        return Err(cannot(&format!("volume {} is gone", mount.volume)));
    }
    for _ in 0..ROUNDS {
        let refusal = match create(ctx, spec, replaced, options)? {
            Ok(()) => return Ok(None),
            Err(refusal) => refusal,
        };
        if refusal.is_no_image() && (is_restored || spec.source.is_some()) {
            return Err(cannot("the snapshot is not on the node"));
        } else if refusal.is_no_image() {
            match ctx.api.pull(&image)? {
                Pull::Done => {}
                Pull::Running(progress) => {
                    return Ok(Some(growing(spec, format!("image: {progress}"))));
                }
                Pull::Failed(why) => {
                    return Err(Error::Other(format!("image {image} is unavailable: {why}")));
                }
            }
        } else if refusal.is_no_network() {
            network::create(ctx, &spec.network)?;
        } else if options.own_view && refusal.is_no_lxcfs() {
            options.own_view = false;
        } else if refusal.is_name_taken() {
            removed(ctx.api.remove_part()?)?;
        } else if refusal.is_no_disk_limit()
            && !grows
            && options.disk_limit
            && ctx.settings.disk_limit == DiskLimit::Auto
        {
            options.disk_limit = false;
        } else if refusal.is_no_disk_limit() {
            return Err(cannot(&refusal.message));
        } else {
            return Err(refusal.during("creating the container that replaces the old one"));
        }
    }
    Err(Error::RetryLater(LOOK_AGAIN_MS))
}

/// Replaces the instance's container by one that has all of its content.
pub(crate) fn replace(ctx: &Context, spec: &Spec, old: &str) -> Result<Report, Error> {
    renamed(ctx.api.name_whole()?)?;
    take_over(ctx, spec, Some(old))
}

/// Replaces the instance's container by the one that is named as complete.
///
/// # Errors
/// Those that let the host try again: the old disk is no longer the instance's.
pub(crate) fn take_over(ctx: &Context, spec: &Spec, old: Option<&str>) -> Result<Report, Error> {
    let taken = old.map_or(Ok(()), |old| removed(ctx.api.remove(old)?));
    let taken = taken.and_then(|()| renamed(ctx.api.name_own()?));
    taken.map_err(|error| match error {
        Error::Unreachable(_) | Error::RetryLater(_) => error,
        other => {
            log!(
                Warn,
                "instance {}: its new disk cannot take the place of the old one yet: {other:?}",
                spec.tag.instance
            );
            Error::RetryLater(TAKE_OVER_AGAIN_MS)
        }
    })?;
    log!(
        Info,
        "instance {} has a disk of {} GiB now",
        spec.tag.instance,
        spec.size.disk_size_gib
    );
    Ok(Report::settled(spec.generation, Phase::Stopped(None)))
}

pub(crate) fn renamed(reply: Reply<()>) -> Result<(), Error> {
    reply.during("renaming the container")
}

pub(crate) fn removed(reply: Reply<()>) -> Result<(), Error> {
    match reply {
        Ok(()) => Ok(()),
        Err(refusal) if refusal.is_not_found() => Ok(()),
        // The host may still write to it for a moment.
        Err(refusal) if refusal.status == 409 => Err(Error::RetryLater(LOOK_AGAIN_MS)),
        Err(refusal) => Err(refusal.during("removing a container")),
    }
}

fn growing(spec: &Spec, progress: String) -> Report {
    Report::again(spec.generation, Phase::Growing(progress), LOOK_AGAIN_MS)
}
