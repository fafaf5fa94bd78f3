//! The bridge networks of owners, and that of public addresses.
//!
//! A network is created when the engine refuses a container for lack of it, and removed with its
//! last container. Both may happen at once for two instances of one owner; the call that finds the
//! network missing creates it again.

use crate::api::Reply;
use crate::api::model::{NetworkDetails, Summary};
use crate::context::Context;
use crate::create_body::Endpoint;
use crate::found::label;
use crate::product::Product;
use crate::{libpod, names};
use serde_json::{Value, json};
use wharf_guest::{Error, Network, log};

/// Returns the name of a network. A public network may be the operator's own.
#[must_use]
pub fn name(ctx: &Context, network: &Network) -> String {
    match &ctx.settings.public_network {
        Some(theirs) if is_public(network) => theirs.clone(),
        _ => names::network(network),
    }
}

fn is_public(network: &Network) -> bool {
    network.id.starts_with(names::PUBLIC_ID)
}

fn is_operators_own(ctx: &Context, network: &Network) -> bool {
    is_public(network) && ctx.settings.public_network.is_some()
}

/// Creates the network if it is missing and not the operator's.
///
/// # Errors
/// [`Error::Conflict`] if a network with this name belongs to another installation, has other
/// addresses, or has containers of another owner.
pub fn create(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_operators_own(ctx, network) {
        return Ok(());
    }
    for _ in 0..2 {
        match make(ctx, network)? {
            Ok(()) => return Ok(()),
            Err(refusal) if refusal.is_name_taken() => {
                if is_right(ctx, network)? {
                    return Ok(());
                }
            }
            Err(refusal) => return Err(refusal.during("creating the network")),
        }
    }
    Err(Error::RetryLater(500))
}

/// Creates the network if it is missing. Docker detects a missing network late in a start and then
/// undoes the rest; a check in advance is much cheaper.
///
/// # Errors
/// Those of [`create`].
pub fn provide(ctx: &Context, network: &Network) -> Result<(), Error> {
    match is_right(ctx, network)? {
        true => Ok(()),
        false => create(ctx, network),
    }
}

/// Checks that no container of a previous owner is on the network. One may be left if the database
/// was restored from an older copy.
fn without_other_owners(
    ctx: &Context,
    network: &Network,
    details: &NetworkDetails,
) -> Result<(), Error> {
    let is_theirs = |labels| label(labels, names::OWNER) == Some(&network.id);
    if is_public(network) || is_theirs(&details.labels) {
        return Ok(());
    }
    let members = members(ctx, network)?;
    match members.iter().find(|member| !is_theirs(&member.labels)) {
        Some(other) => Err(Error::Conflict(format!(
            "container {} of another owner is on network {}",
            other.id,
            names::network(network)
        ))),
        None => Ok(()),
    }
}

/// Lists the containers on the network, running or not.
fn members(ctx: &Context, network: &Network) -> Result<Vec<Summary>, Error> {
    let member = match is_public(network) {
        true => names::PUBLIC_NETWORK,
        false => names::NETWORK,
    };
    let labels = [
        (names::INSTALLATION, ctx.installation),
        (member, &names::own_name(network)),
    ];
    let members = ctx.api.containers(&labels)?;
    members.map_err(|refusal| refusal.during("listing a network's containers"))
}

/// Removes the network if it has no container, not even a stopped one. Engines refer to a
/// container's network by its id, and would not accept a new network with its name.
///
/// # Errors
/// When the engine does not answer.
pub fn remove_if_unused(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_operators_own(ctx, network) || !members(ctx, network)?.is_empty() {
        return Ok(());
    }
    let name = names::network(network);
    match ctx.api.remove_network(&name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() || refusal.is_in_use() => {}
        Err(refusal) => log!(Warn, "network {name} is left behind: {}", refusal.message),
    }
    Ok(())
}

/// Attaches a stopped container again, after its network was removed and created anew.
///
/// # Errors
/// When the engine refuses.
pub fn reattach(ctx: &Context, network: &Network, container: &str) -> Result<(), Error> {
    let name = name(ctx, network);
    let off = json!({ "Container": container, "Force": true });
    if let Err(refusal) = ctx.api.disconnect(&name, &off)? {
        log!(
            Debug,
            "container {container} was not on {name}: {}",
            refusal.message
        );
    }
    attach(ctx, network, container)?.map_err(|refusal| refusal.during(ATTACHING))
}

/// Attaches a container that never ran to a second network, which is created if it is missing.
///
/// # Errors
/// When the engine refuses, and those of [`create`].
pub fn join(ctx: &Context, network: &Network, container: &str) -> Result<(), Error> {
    for _ in 0..2 {
        match attach(ctx, network, container)? {
            Ok(()) => return Ok(()),
            Err(refusal) if refusal.is_attached() => return Ok(()),
            Err(refusal) if refusal.is_no_container() => break,
            Err(refusal) if refusal.is_not_found() || refusal.is_no_network() => {
                if is_operators_own(ctx, network) {
                    let message =
                        "the engine has no such network; make it, or leave the setting out";
                    return Err(Error::invalid("settings.public_network", message));
                }
                create(ctx, network)?;
            }
            Err(refusal) => return Err(refusal.during(ATTACHING)),
        }
    }
    Err(Error::RetryLater(500))
}

const ATTACHING: &str = "attaching the container to its network";

fn attach(ctx: &Context, network: &Network, container: &str) -> Result<Reply<()>, Error> {
    let endpoint = Endpoint::at(&network.address);
    let body = json!({ "Container": container, "EndpointConfig": endpoint });
    ctx.api.connect(&name(ctx, network), &body)
}

/// Checks the owner and the addresses of the network with this name. False if it is gone again.
fn is_right(ctx: &Context, network: &Network) -> Result<bool, Error> {
    let name = names::network(network);
    let details = match ctx.api.network_details(&name)? {
        Ok(details) => details,
        Err(refusal) if refusal.is_not_found() => return Ok(false),
        Err(refusal) => return Err(refusal.during("reading the network")),
    };
    if label(&details.labels, names::INSTALLATION) != Some(ctx.installation) {
        return Err(Error::Conflict(format!(
            "network {name} belongs to another installation"
        )));
    }
    let subnets = details.ipam.config.iter().flatten();
    let wanted = &network.subnet;
    if !subnets.into_iter().any(|config| config.subnet == *wanted) {
        return Err(Error::Conflict(format!(
            "network {name} has other addresses than {wanted}"
        )));
    }
    without_other_owners(ctx, network, &details)?;
    Ok(true)
}

/// Podman's Docker interface gives every network a name server on the node, which node rules block.
/// So Podman gets a request to its own interface.
fn make(ctx: &Context, network: &Network) -> Result<Reply<()>, Error> {
    if Product::of(ctx)?.is_podman() {
        let body = libpod::network(ctx.installation, network);
        return ctx.api.create_network_libpod(&body);
    }
    ctx.api.create_network(&body(ctx.installation, network))
}

fn body(installation: &str, network: &Network) -> Value {
    json!({
        "Name": names::network(network),
        "Driver": "bridge",
        "CheckDuplicate": true,
        "Labels": { names::INSTALLATION: installation, names::OWNER: network.id },
        "IPAM": {
            "Driver": "default",
            "Config": [{ "Subnet": network.subnet, "Gateway": network.gateway }],
        },
        "Options": { "com.docker.network.bridge.name": names::bridge(network) },
    })
}
