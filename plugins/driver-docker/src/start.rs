//! The start of a container, with its networks and its size.

use crate::api::Refusal;
use crate::api::model::Limits;
use crate::context::Context;
use crate::found::Found;
use crate::product::Product;
use crate::{libpod, network};
use wharf_guest::{Error, Network, log};

/// Attempts in one call. The deletion of another instance may remove the network between its
/// creation and the start.
const ATTEMPTS: u32 = 3;

/// The result of a start.
pub enum Started {
    /// The container runs.
    Running,
    /// The container is gone.
    Gone,
    /// The container can never start in its current form.
    Never(String),
    /// The container cannot start, because it requests hardware virtualisation and the node has
    /// none.
    NoKvm(String),
    /// The engine cannot mount the files of lxcfs into the container.
    NoView(String),
    /// The engine was killed in an earlier start, and refuses every other one.
    HalfStarted(String),
}

/// Starts a container with these limits, which are those of the call. If the engine can change limits only on
/// a running container, they are changed right after the start.
///
/// # Errors
/// Those of [`start`].
pub fn start_sized(
    ctx: &Context,
    found: &Found,
    limits: &Limits,
    networks: &[&Network],
) -> Result<Started, Error> {
    let late = !applied(ctx, found, limits)?;
    let started = start(ctx, &found.name, networks)?;
    if late && matches!(started, Started::Running) {
        libpod::resize(ctx, found, limits)?;
    }
    Ok(started)
}

/// Gives a running container the limits of the call. A Docker that reports the wanted size needs no request.
/// Podman's report is unreliable: before 5 it is the size of the creation, later possibly that of a failed
/// update.
///
/// # Errors
/// When the engine refuses, or the usage of memory exceeds the size. A later attempt may succeed.
pub fn resize(ctx: &Context, found: &Found, limits: &Limits) -> Result<(), Error> {
    if limits.are(&found.details.host_config) && !Product::of(ctx)?.is_podman() {
        return Ok(());
    }
    if updated(ctx, found)? {
        return Ok(());
    }
    libpod::resize(ctx, found, limits).map_err(|error| match error {
        Error::Invalid(wrong) => Error::Other(format!("applying the size: {}", wrong.message)),
        other => other,
    })
}

/// Resizes a stopped container if its size differs. False if the engine can do that only after the
/// start.
fn applied(ctx: &Context, found: &Found, limits: &Limits) -> Result<bool, Error> {
    Ok(limits.are(&found.details.host_config) || updated(ctx, found)?)
}

/// False if the engine's Docker interface lacks the request.
fn updated(ctx: &Context, found: &Found) -> Result<bool, Error> {
    match ctx.api.resize(&found.name)? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.is_unknown_request() => Ok(false),
        Err(refusal) => Err(refusal.during("applying the size")),
    }
}

/// Starts a container on its networks, which are created if they are missing.
///
/// # Errors
/// [`Error::Insufficient`] if something else has a port or an address of the container, and
/// [`Error::Other`] for temporary problems; the container is unchanged.
pub fn start(ctx: &Context, name: &str, networks: &[&Network]) -> Result<Started, Error> {
    for attempt in 0..ATTEMPTS {
        let refusal = match ctx.api.start(name)? {
            Ok(()) => return Ok(Started::Running),
            Err(refusal) => refusal,
        };
        if refusal.is_no_bridge() {
            let mut made = false;
            for network in networks {
                if refusal.message.contains(&network::bridge(ctx, network)?) {
                    network::remake(ctx, network)?;
                    network::reattach(ctx, network, name)?;
                    made = true;
                }
            }
            if !made {
                return judge(&refusal);
            }
        } else if refusal.is_no_network() {
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
    } else if refusal.is_unmountable_lxcfs() {
        Ok(Started::NoView(refusal.message.clone()))
    } else if refusal.is_no_lxcfs() {
        // The container exists with its mounts. It starts once the operator has started lxcfs.
        Err(Error::Other(format!(
            "starting the container: lxcfs does not run on the node: {}",
            refusal.message
        )))
    } else if refusal.is_half_started() {
        Ok(Started::HalfStarted(refusal.message.clone()))
    } else if refusal.is_no_kvm() {
        Ok(Started::NoKvm(refusal.message.clone()))
    } else if refusal.is_no_device() {
        Err(logged(Error::held("n_gpus"), refusal))
    } else if refusal.is_final() || refusal.is_forbidden() {
        Ok(Started::Never(refusal.message.clone()))
    } else {
        Err(Error::taken(&refusal.message).map_or_else(
            || refusal.during("starting the container"),
            |taken| logged(taken, refusal),
        ))
    }
}

/// Notes the engine's own words about something that the host is told of in numbers.
fn logged(error: Error, refusal: &Refusal) -> Error {
    log!(Warn, "starting the container: {}", refusal.message);
    error
}
