//! Starting a container, with whatever is missing for it.

use crate::api::Refusal;
use crate::context::Context;
use crate::create_body::Update;
use crate::found::Found;
use crate::product::Product;
use crate::{libpod, network};
use wharf_guest::{Error, Network};

/// Attempts until another call is to go on: another instance's deletion may take the network away
/// between making it and starting on it.
const ATTEMPTS: u32 = 3;

/// How a start ended.
pub enum Started {
    /// It runs.
    Running,
    /// The container is gone.
    Gone,
    /// It cannot be started as it is.
    Never(String),
    /// Nor can this one: it was given hardware virtualisation, and the node has none.
    NoKvm(String),
}

/// Starts a container of this size. Limits that the engine can only change while it runs are changed
/// right after.
///
/// # Errors
/// As [`start`].
pub fn start_sized(
    ctx: &Context,
    found: &Found,
    limits: &Update,
    networks: &[&Network],
) -> Result<Started, Error> {
    let late = !applied(ctx, found, limits)?;
    let started = start(ctx, &found.name, networks)?;
    if late && matches!(started, Started::Running) {
        libpod::resize(ctx, found, limits)?;
    }
    Ok(started)
}

/// Gives a container that runs its size. Where the engine tells that size already, only Docker's word
/// is taken: a Podman before 5 tells the size of the creation whatever holds, and a later one that of
/// an update that failed.
///
/// # Errors
/// When the engine refuses, or more memory is in use; it may be less later.
pub fn resize(ctx: &Context, found: &Found, limits: &Update) -> Result<(), Error> {
    if limits.is(&found.details.host_config) && !Product::of(ctx)?.is_podman() {
        return Ok(());
    }
    if updated(ctx, found, limits)? {
        return Ok(());
    }
    libpod::resize(ctx, found, limits).map_err(|error| match error {
        Error::Invalid(wrong) => Error::Other(format!("applying the size: {}", wrong.message)),
        other => other,
    })
}

/// Gives a container that does not run its size, if it has another; false: not before it runs.
fn applied(ctx: &Context, found: &Found, limits: &Update) -> Result<bool, Error> {
    Ok(limits.is(&found.details.host_config) || updated(ctx, found, limits)?)
}

/// False: the engine's Docker interface has no such request.
fn updated(ctx: &Context, found: &Found, limits: &Update) -> Result<bool, Error> {
    match ctx.api.update(&found.name, limits)? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.is_unknown_request() => Ok(false),
        Err(refusal) => Err(refusal.during("applying the size")),
    }
}

/// Starts a container on its networks, which are made if they are missing.
///
/// # Errors
/// What may be otherwise next time, such as a port of the node that is taken: [`Error::Other`], and
/// the container stays as it was.
pub fn start(ctx: &Context, name: &str, networks: &[&Network]) -> Result<Started, Error> {
    for attempt in 0..ATTEMPTS {
        let refusal = match ctx.api.start(name)? {
            Ok(()) => return Ok(Started::Running),
            Err(refusal) => refusal,
        };
        if refusal.is_no_network() {
            for network in networks {
                network::create(ctx, network)?;
                if attempt > 0 {
                    network::reattach(ctx, network, name)?;
                }
            }
        } else {
            return judge(&refusal);
        }
    }
    Err(Error::RetryLater(500))
}

fn judge(refusal: &Refusal) -> Result<Started, Error> {
    if refusal.is_not_found() {
        Ok(Started::Gone)
    } else if refusal.is_no_kvm() {
        Ok(Started::NoKvm(refusal.message.clone()))
    } else if refusal.is_final() || refusal.is_no_device() || refusal.is_forbidden() {
        Ok(Started::Never(refusal.message.clone()))
    } else {
        Err(refusal.during("starting the container"))
    }
}
