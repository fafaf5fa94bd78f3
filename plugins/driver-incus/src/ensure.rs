//! Creation of an instance: create it, write its files, start it. In OVN mode, the network of its owner
//! precedes it, and its forwards precede its start.
//!
//! After a crash, the next `ensure` continues from the engine's state. An instance that never started
//! gets its files again and is started; one that ran is only reported.

use crate::api::{Outcome, Refusal, Reply};
use crate::context::Context;
use crate::found::{self, Found};
use crate::start::{self, Started, repeat_interrupted, start_sized};
use crate::{ENGINE_KIND, digest, forward, gpu, id_range, names, owner_network, phase, snapshots};
use std::collections::BTreeSet;
use wharf_guest::{During, Error, Phase, Report, ResourceType, Spec, log};

/// Delay after a start: the engine then knows whether the first process is alive, ms.
const LOOK_AGAIN_MS: u32 = 500;
/// Delay while the engine creates the instance, ms.
const CREATING_AGAIN_MS: u32 = 1_000;

/// See the `driver` interface.
pub fn ensure(ctx: &Context, spec: &Spec) -> Result<Report, Error> {
    supported(spec)?;
    let Some(image) = image(spec) else {
        let reason = format!("the flavor has no image for engines of kind {ENGINE_KIND}");
        return Ok(failed(spec, reason));
    };
    if (spec.may_exist || spec.fetched)
        && let Some(found) = found::find(ctx, &spec.tag)?
    {
        return adopt(ctx, spec, &found, &BTreeSet::new());
    }
    if spec.fetched {
        return Err(Error::NotFound);
    }
    owner_network::ensure(ctx, &spec.network)?;
    let running = id_range::running(ctx)?;
    let made = match &spec.source {
        None => ctx.api.create(&digest::of(spec))?,
        Some(_) => match snapshots::clone(ctx, spec)? {
            Ok(made) => made,
            Err(why) => return Ok(failed(spec, why)),
        },
    };
    match made {
        Ok(Outcome::Done) => {}
        Ok(Outcome::Unknown) => {
            return Ok(Report::again(
                spec.generation,
                Phase::Creating,
                CREATING_AGAIN_MS,
            ));
        }
        // That of a removed instance is free after a moment, so that the host asks more than once.
        Err(refusal) if refusal.is_address_taken() => {
            log!(Warn, "instance {}: {}", spec.tag.instance, refusal.message);
            return Err(Error::held("lan_ipv4"));
        }
        Err(refusal) if refusal.is_name_taken() => {}
        // A creation whose answer was lost goes on.
        Err(refusal) if refusal.is_busy() => {
            return Ok(Report::again(
                spec.generation,
                Phase::Creating,
                CREATING_AGAIN_MS,
            ));
        }
        Err(_) if owner_network::has_gone(ctx)? => {
            return Err(Error::RetryLater(LOOK_AGAIN_MS));
        }
        Err(refusal) => return unmade(spec, image, &refusal),
    }
    match found::find(ctx, &spec.tag)? {
        Some(found) => adopt(ctx, spec, &found, &running),
        None => Err(Error::RetryLater(LOOK_AGAIN_MS)),
    }
}

/// Checks for features that Incus does not have.
///
/// # Errors
/// [`Error::Unsupported`].
pub fn supported(spec: &Spec) -> Result<(), Error> {
    if spec.resource_type != ResourceType::Container {
        return Err(Error::Unsupported("virtual machines on Incus".into()));
    }
    if !spec.blueprint.command.is_empty() {
        let message = "a blueprint with a command: Incus starts the image's own init";
        return Err(Error::Unsupported(message.into()));
    }
    if let Some(device) = spec.misnamed_gpu(gpu::is_address) {
        return Err(Error::Unsupported(format!(
            "GPU {device:?}: the node's `gpus` need `devices` with addresses on the PCI bus, such as \
             \"0000:01:00.0\""
        )));
    }
    Ok(())
}

fn image(spec: &Spec) -> Option<&str> {
    let mut images = spec.blueprint.images.iter();
    let image = images.find(|image| image.engine_kind == ENGINE_KIND)?;
    Some(&image.reference)
}

/// Continues with an existing instance, which does not share ids with those of `running`.
fn adopt(
    ctx: &Context,
    spec: &Spec,
    found: &Found,
    running: &BTreeSet<String>,
) -> Result<Report, Error> {
    let label = found.details.config.get(names::SPEC);
    if label.is_some_and(|label| *label != digest::of(spec)) {
        let why = format!("{} has another specification", found.name);
        return Err(Error::Conflict(why));
    }
    match found.phase() {
        Phase::Creating if !phase::is_complete(&found.details) => {
            unfinished(ctx, spec, &found.name)
        }
        // The first start removes the files, so that none can be written meanwhile.
        Phase::Creating | Phase::Stopped(_) if start::is_under_way(ctx, &spec.tag, found)? => {
            booting(spec, &Started::Starting)
        }
        Phase::Creating if snapshots::is_bare(found) => {
            snapshots::furnish(ctx, spec, false)?;
            match found::find(ctx, &spec.tag)? {
                Some(found) if !snapshots::is_bare(&found) => adopt(ctx, spec, &found, running),
                _ => Err(Error::RetryLater(LOOK_AGAIN_MS)),
            }
        }
        Phase::Creating => match id_range::compare(ctx, &spec.tag, found, running)? {
            Some(again_ms) => Ok(Report::again(spec.generation, Phase::Creating, again_ms)),
            None => first_start(ctx, spec, found),
        },
        // The engine dates a start before it runs the instance, and the start was interrupted in between.
        Phase::Stopped(_) if start::has_begun(found) => booting(spec, &start_sized(ctx, found)?),
        phase @ (Phase::Ready | Phase::Booting) => match repeat_interrupted(ctx, found)? {
            None => Ok(Report::settled(spec.generation, phase)),
            Some(started) => booting(spec, &started),
        },
        phase => Ok(Report::settled(spec.generation, phase)),
    }
}

/// Waits for a creation in progress. If the engine was killed during the creation, it never completes
/// the instance, which has no data then.
///
/// # Errors
/// When the engine refuses.
pub fn unfinished(ctx: &Context, spec: &Spec, name: &str) -> Result<Report, Error> {
    let operated = ctx
        .api
        .is_operated(name)?
        .during("listing the operations")?;
    // It may have ended between the two looks.
    let complete =
        found::find(ctx, &spec.tag)?.is_none_or(|found| phase::is_complete(&found.details));
    if !operated && !complete {
        log!(
            Warn,
            "the engine has not completed {name}; it is removed and made again"
        );
        match ctx.api.remove()? {
            Ok(_) => {}
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) => return Err(refusal.during("removing an incomplete instance")),
        }
    }
    Ok(Report::again(
        spec.generation,
        Phase::Creating,
        CREATING_AGAIN_MS,
    ))
}

/// Starts an instance that never ran.
fn first_start(ctx: &Context, spec: &Spec, found: &Found) -> Result<Report, Error> {
    for directory in directories(spec) {
        match ctx.api.make_directory(directory)? {
            // A request of an interrupted call made it meanwhile.
            Err(refusal) if refusal.is_present() => {}
            made => put(made, "making a directory")?,
        }
    }
    for file in &spec.blueprint.files {
        put(ctx.api.write(file)?, "writing a file")?;
    }
    forward::publish(ctx, spec)?;
    booting(spec, &start_sized(ctx, found)?)
}

/// An instance that has been deleted, or started by an interrupted call, lacks the place of its files.
fn put(reply: Reply<()>, doing: &str) -> Result<(), Error> {
    match reply {
        Err(refusal) if refusal.is_not_found() => Err(Error::RetryLater(LOOK_AGAIN_MS)),
        reply => reply.during(doing),
    }
}

fn booting(spec: &Spec, started: &Started) -> Result<Report, Error> {
    match started {
        Started::Running | Started::Starting => Ok(Report::again(
            spec.generation,
            Phase::Booting,
            LOOK_AGAIN_MS,
        )),
        Started::Gone => Err(Error::RetryLater(LOOK_AGAIN_MS)),
    }
}

/// The directories of the files, parents first. Every image has those at the root.
fn directories(spec: &Spec) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    for file in &spec.blueprint.files {
        let slashes = file.path.match_indices('/').skip(2);
        all.extend(slashes.filter_map(|(end, _)| file.path.get(..end)));
    }
    all
}

fn unmade(spec: &Spec, image: &str, refusal: &Refusal) -> Result<Report, Error> {
    if refusal.is_no_image() {
        let reason = format!(
            "the project has no image {image} ({}); `wharf images build` makes it",
            refusal.message
        );
        return Ok(failed(spec, reason));
    }
    if refusal.is_final() {
        let reason = format!(
            "the engine refuses to create the instance: {}",
            refusal.message
        );
        return Ok(failed(spec, reason));
    }
    Err(refusal.during("creating the instance"))
}

fn failed(spec: &Spec, reason: String) -> Report {
    log!(Warn, "instance {}: {reason}", spec.tag.instance);
    Report::settled(spec.generation, Phase::Failed(reason))
}
