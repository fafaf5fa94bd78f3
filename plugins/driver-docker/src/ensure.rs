//! Creation of an instance: create the container, insert the files, start it.
//!
//! After a crash, the next `ensure` continues from the engine's state. A container that never
//! started gets its files again and is started; one that ran is only reported.

use crate::api::{Refusal, Reply};
use crate::context::Context;
use crate::found::{self, Found};
use crate::product::Product;
use crate::pull::{self, Pull};
use crate::settings::{BtrfsQuotas, DiskLimit, Kvm, Lxcfs};
use crate::start::{Started, start, start_sized};
use crate::{ENGINE_KIND, digest, gpu, names, network, snapshots, volumes};
use wharf_guest::{Error, Phase, Report, ResourceType, Spec, log};

/// Attempts to create in one call: without a disk limit, without hardware virtualisation, without
/// lxcfs, with the network, with the image, and after a container vanished.
const ROUNDS: u32 = 7;
/// Delay after a start: the engine then knows whether the first process is alive, ms.
const LOOK_AGAIN_MS: u32 = 500;
/// Delay during a pull, which takes seconds to minutes, ms.
const PULL_AGAIN_MS: u32 = 1_000;
/// Delay before another pull after a failure that may pass, ms.
const PULL_RETRY_MS: u32 = 5_000;
/// Delay while an earlier container of the instance is removed, which takes two looks at the node, ms.
const GIVEN_UP_MS: u32 = 2_000;

/// See the `driver` interface.
pub fn ensure(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    supported(spec)?;
    let Some(image) = image(ctx, spec) else {
        let reason = format!("the flavor has no image for engines of kind {ENGINE_KIND}");
        return Ok(Report::settled(spec.generation, Phase::Failed(reason)));
    };
    let is_container = spec.resource_type == ResourceType::Container;
    let mut options = Options {
        disk_limit: ctx.settings.disk_limit != DiskLimit::Off,
        kvm: !is_container && ctx.settings.kvm != Kvm::Off,
        // The engine says whether it can.
        own_view: is_container && ctx.settings.lxcfs != Lxcfs::Off,
    };
    if (spec.may_exist || spec.fetched)
        && let Some(found) = found::named(ctx, &spec.tag, false)?
    {
        match adopt(ctx, spec, &found)? {
            First::Report(report) => return Ok(report),
            First::Without(part) => options.drop(part),
            First::Gone => return Err(Error::RetryLater(LOOK_AGAIN_MS)),
        }
    }
    if spec.fetched {
        return Err(Error::NotFound);
    }
    if let Some(mount) = volumes::missing(ctx, spec)? {
        let reason = format!("volume {} is not on the node", mount.volume);
        return Ok(failed(spec, reason));
    }
    if spec.source.is_some() && !snapshots::fits(ctx, spec)? {
        return Ok(failed(spec, "the snapshot is not on the node".into()));
    }
    for _ in 0..ROUNDS {
        let refusal = match create(ctx, spec, Replaced::Nothing, options)? {
            Ok(()) => match first_start(ctx, spec, None)? {
                First::Report(report) => return Ok(report),
                First::Without(part) => {
                    options.drop(part);
                    continue;
                }
                First::Gone => None,
            },
            Err(refusal) => Some(refusal),
        };
        // An existing container may have outlived its image, or may have been renamed.
        let may_exist = |refusal: &Refusal| refusal.is_name_taken() || refusal.is_no_image();
        if refusal.as_ref().is_none_or(may_exist)
            && let Some(found) = found::named(ctx, &spec.tag, false)?
        {
            match adopt(ctx, spec, &found)? {
                First::Report(report) => return Ok(report),
                First::Without(part) => {
                    options.drop(part);
                    continue;
                }
                First::Gone => return Err(Error::RetryLater(LOOK_AGAIN_MS)),
            }
        }
        let Some(refusal) = refusal else {
            return Err(Error::RetryLater(LOOK_AGAIN_MS));
        };
        if refusal.is_no_image() && spec.source.is_some() {
            return Ok(failed(spec, "the snapshot has gone from the node".into()));
        } else if refusal.is_no_image() {
            match ctx.api.pull(&image)? {
                Pull::Done => {}
                Pull::Running(progress) => {
                    return Ok(Report::again(
                        spec.generation,
                        Phase::Pulling(progress),
                        PULL_AGAIN_MS,
                    ));
                }
                Pull::Failed(why) if pull::is_lasting(&image, &why) => {
                    return Ok(failed(spec, no_image(&image, &why)));
                }
                // The host tries again until the deadline. Only its log has this reason.
                Pull::Failed(why) => {
                    log!(
                        Warn,
                        "instance {}: {}",
                        spec.tag.instance,
                        no_image(&image, &why)
                    );
                    return Err(Error::RetryLater(PULL_RETRY_MS));
                }
            }
        } else if refusal.is_no_network() {
            network::create(ctx, &spec.network)?;
        } else if options.kvm && refusal.is_no_kvm() {
            options.kvm = false;
        } else if options.own_view && refusal.is_no_lxcfs() {
            options.own_view = false;
        } else if options.disk_limit
            && ctx.settings.disk_limit == DiskLimit::Auto
            && refusal.is_no_disk_limit()
        {
            options.disk_limit = false;
        } else if !refusal.is_name_taken() {
            return unmade(spec, &refusal);
        }
    }
    Err(Error::RetryLater(LOOK_AGAIN_MS))
}

/// Options of a creation. The driver drops an option that the engine does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// Limit the size of the disk.
    pub(crate) disk_limit: bool,
    /// Pass the node's `/dev/kvm` to the container.
    pub(crate) kvm: bool,
    /// Show the container its own CPUs and memory, with the node's lxcfs.
    pub(crate) own_view: bool,
}

/// A part of a container that an engine takes at the creation, and may refuse at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// See [`Options::kvm`].
    Kvm,
    /// See [`Options::own_view`].
    View,
}

impl Options {
    /// Continues without a part.
    fn drop(&mut self, part: Part) {
        match part {
            Part::Kvm => self.kvm = false,
            Part::View => self.own_view = false,
        }
    }
}

fn supported(spec: &Spec) -> Result<(), Error> {
    if let Some(device) = spec.misnamed_gpu(gpu::is_qualified) {
        return Err(Error::Unsupported(format!(
            "GPU {device:?}: the node's `gpus` need `devices` with names of the Container Device \
             Interface, such as \"nvidia.com/gpu=0\""
        )));
    }
    Ok(())
}

pub(crate) fn image(ctx: &Context, spec: &Spec) -> Option<String> {
    let images = &spec.blueprint.images;
    let image = images
        .iter()
        .find(|image| image.engine_kind == ENGINE_KIND)?;
    Some(ctx.settings.image(&image.reference))
}

/// The container whose place a new one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced<'a> {
    Nothing,
    /// One whose disk has this limit, and is to grow.
    Small(&'a str),
    /// One whose disk is to be that of the call's snapshot.
    Restored,
    /// One on another node, or in a backup.
    Elsewhere,
}

/// Creates the instance's container, or its replacement. If the image counts towards the disk's limit, the
/// limit is raised by its size. A virtual machine's limit includes room for it.
pub(crate) fn create(
    ctx: &Context,
    spec: &Spec,
    replaced: Replaced<'_>,
    options: Options,
) -> Result<Reply<()>, Error> {
    let is_of_snapshot = spec.source.is_some() || replaced == Replaced::Restored;
    if options.disk_limit
        && spec.resource_type == ResourceType::Container
        && ctx.settings.btrfs_quotas == BtrfsQuotas::Full
        && let Err(refusal) = ctx.api.measure_image(is_of_snapshot)?
    {
        return Ok(Err(refusal));
    }
    let network = network::which(ctx, &spec.network)?;
    let on_podman = Product::of(ctx)?.is_podman();
    let by_its_own_interface = on_podman && !spec.gpu_devices.is_empty();
    let request = if by_its_own_interface {
        "create-podman"
    } else {
        "create"
    };
    let (name, grown_from) = match replaced {
        Replaced::Nothing => (names::container(&spec.tag), None),
        Replaced::Small(limit) => (names::part(&spec.tag), Some(limit)),
        Replaced::Restored | Replaced::Elsewhere => (names::part(&spec.tag), None),
    };
    // With `auto`, the host omits the limit only after the engine has refused one.
    let unlimited = !options.disk_limit && ctx.settings.disk_limit == DiskLimit::Auto;
    let creation = network
        .named(request)
        .with("name", name)
        .with("digest", digest::of(spec))
        .with_some("grown-from", grown_from)
        .flag("restored", replaced == Replaced::Restored)
        .flag("fetched", replaced == Replaced::Elsewhere && !spec.fetched)
        .flag("no-disk-limit", unlimited)
        .flag("kvm", options.kvm)
        .flag("own-view", options.own_view)
        .flag("podman", on_podman && !by_its_own_interface);
    ctx.api.create(creation)
}

/// Continues with an existing container of the instance.
fn adopt(ctx: &Context, spec: &Spec, found: &Found) -> Result<First, Error> {
    let incarnation = found.incarnation();
    if incarnation.is_some_and(|earlier| earlier < spec.tag.incarnation) {
        // It was given up with its node, whose machine is back. Wharf removes it soon.
        return Err(Error::RetryLater(GIVEN_UP_MS));
    }
    if incarnation != Some(spec.tag.incarnation) {
        let why = format!("container {} belongs to another incarnation", found.name);
        return Err(Error::Conflict(why));
    }
    if found
        .label(names::SPEC)
        .is_some_and(|label| label != digest::of(spec))
    {
        let why = format!("container {} has another specification", found.name);
        return Err(Error::Conflict(why));
    }
    match found.phase() {
        Phase::Creating => first_start(ctx, spec, Some(found)),
        phase => Ok(First::Report(Report::settled(spec.generation, phase))),
    }
}

/// The result of the first start.
enum First {
    Report(Report),
    /// The engine cannot start a container with this part; the container was removed.
    Without(Part),
    /// The container does not exist.
    Gone,
}

/// Starts a container that never ran. A container that was found may have another size; a new one
/// has the right size.
fn first_start(ctx: &Context, spec: &Spec, found: Option<&Found>) -> Result<First, Error> {
    let made = names::container(&spec.tag);
    let name = found.map_or(&made, |found| &found.name);
    if let Some(public) = &spec.public_network {
        network::join(ctx, public, name)?;
    }
    match ctx.api.unpack(name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() => return Ok(First::Gone),
        Err(refusal) => return Err(refusal.during("inserting the files")),
    }
    let networks: Vec<_> = [&spec.network]
        .into_iter()
        .chain(&spec.public_network)
        .collect();
    network::create(ctx, &spec.network)?;
    let started = match found {
        Some(found) => start_sized(ctx, found, &ctx.api.limits()?, &networks)?,
        None => start(ctx, name, &networks)?,
    };
    Ok(First::Report(match started {
        Started::Running => Report::again(spec.generation, Phase::Booting, LOOK_AGAIN_MS),
        Started::Gone => return Ok(First::Gone),
        Started::Never(why) => unstartable(spec, &why),
        // Its content would be removed with it.
        Started::NoView(why) if spec.fetched => unstartable(spec, &why),
        Started::HalfStarted(why) if spec.fetched => {
            return Err(Error::Other(format!("starting the container: {why}")));
        }
        Started::HalfStarted(why) => {
            log!(
                Warn,
                "instance {}: a start was cut, and its container is made again: {why}",
                spec.tag.instance
            );
            return without(ctx, name, None);
        }
        Started::NoKvm(_) => return without(ctx, name, Some(Part::Kvm)),
        Started::NoView(why) => {
            log!(
                Warn,
                "instance {}: it sees the node's size: {why}",
                spec.tag.instance
            );
            return without(ctx, name, Some(Part::View));
        }
    }))
}

/// Removes a container that cannot be started, or not with a part. It never ran, and its content is the image's or a
/// snapshot's.
fn without(ctx: &Context, name: &str, part: Option<Part>) -> Result<First, Error> {
    match ctx.api.remove(name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) => {
            return Err(refusal.during("removing a container that cannot be started"));
        }
    }
    Ok(part.map_or(First::Gone, First::Without))
}

fn no_image(image: &str, why: &str) -> String {
    let remedy = if pull::is_local(image) {
        "set settings.image_prefix of the node to a registry that has it"
    } else if pull::is_refused(why) {
        "correct the account of its registry in [[registry]], which flavors of plugins do not get"
    } else {
        "correct its name, or let the engine reach its registry"
    };
    format!(
        "image {image} is not on the node and cannot be pulled ({why}); put it on the node, or {remedy}"
    )
}

fn unmade(spec: &Spec, refusal: &Refusal) -> Result<Report, Error> {
    if refusal.is_no_device() {
        log!(Warn, "instance {}: {}", spec.tag.instance, refusal.message);
        return Err(Error::held("n_gpus"));
    }
    if refusal.is_final() || refusal.is_no_disk_limit() {
        return Ok(failed(
            spec,
            format!(
                "the engine refuses to create the container: {}",
                refusal.message
            ),
        ));
    }
    Err(refusal.during("creating the container"))
}

fn unstartable(spec: &Spec, why: &str) -> Report {
    failed(spec, format!("the container cannot be started: {why}"))
}

fn failed(spec: &Spec, reason: String) -> Report {
    log!(Warn, "instance {}: {reason}", spec.tag.instance);
    Report::settled(spec.generation, Phase::Failed(reason))
}
