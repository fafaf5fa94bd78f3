//! The bridge network of an owner, and the one of public addresses.
//!
//! A network is made when a container is refused for want of it, and removed with the last container that
//! belongs to it. Both may happen at once for two instances of one owner; whoever finds the network
//! missing makes it again.

use crate::api::Reply;
use crate::api::model::{NetworkDetails, Summary};
use crate::context::Context;
use crate::create_body::Endpoint;
use crate::found::label;
use crate::product::Product;
use crate::{libpod, names};
use serde_json::{Value, json};
use wharf_guest::{Error, Network, log};

/// What a network is called: a public one may be the operator's.
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

fn is_the_operators(ctx: &Context, network: &Network) -> bool {
    is_public(network) && ctx.settings.public_network.is_some()
}

/// Makes the network, if it is not there and ours to make.
///
/// # Errors
/// [`Error::Conflict`] when a network of that name belongs to someone else, has other addresses or another
/// owner's containers.
pub fn create(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_the_operators(ctx, network) {
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
            Err(refusal) => return Err(refusal.during("making the network")),
        }
    }
    Err(Error::RetryLater(500))
}

/// Makes the network if it is not there. Docker says that one is missing only when it has set up all
/// else of a start, and takes that back; to ask before costs a fraction of it.
///
/// # Errors
/// As [`create`].
pub fn provide(ctx: &Context, network: &Network) -> Result<(), Error> {
    match is_right(ctx, network)? {
        true => Ok(()),
        false => create(ctx, network),
    }
}

/// A network that another owner had may serve this one once all of that owner's containers are gone;
/// not all may be, when the database is an older copy.
fn without_strangers(
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
        Some(stranger) => Err(Error::Conflict(format!(
            "container {} of another owner is on network {}",
            stranger.id,
            names::network(network)
        ))),
        None => Ok(()),
    }
}

/// The containers that belong to it, running or not.
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

/// Removes the network if no container belongs to it, not even a stopped one: engines remember a
/// container's network by its identity, and would not start it on a new one of the same name.
///
/// # Errors
/// When the engine gives no answer.
pub fn remove_if_unused(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_the_operators(ctx, network) || !members(ctx, network)?.is_empty() {
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

/// Puts a stopped container back on the network, after someone removed that network and it was made
/// again.
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

/// Puts a container that was never started on a second network, which is made if it is missing.
///
/// # Errors
/// When the engine refuses, and as [`create`].
pub fn join(ctx: &Context, network: &Network, container: &str) -> Result<(), Error> {
    for _ in 0..2 {
        match attach(ctx, network, container)? {
            Ok(()) => return Ok(()),
            Err(refusal) if refusal.is_attached() => return Ok(()),
            Err(refusal) if refusal.is_no_container() => break,
            Err(refusal) if refusal.is_not_found() || refusal.is_no_network() => {
                if is_the_operators(ctx, network) {
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

const ATTACHING: &str = "putting the container on its network";

fn attach(ctx: &Context, network: &Network, container: &str) -> Result<Reply<()>, Error> {
    let endpoint = Endpoint::at(&network.address);
    let body = json!({ "Container": container, "EndpointConfig": endpoint });
    ctx.api.connect(&name(ctx, network), &body)
}

/// Whether the network of that name is ours and has the addresses wanted. False: it is gone again.
fn is_right(ctx: &Context, network: &Network) -> Result<bool, Error> {
    let name = names::network(network);
    let details = match ctx.api.network_details(&name)? {
        Ok(details) => details,
        Err(refusal) if refusal.is_not_found() => return Ok(false),
        Err(refusal) => return Err(refusal.during("reading the network")),
    };
    if label(&details.labels, names::INSTALLATION) != Some(ctx.installation) {
        return Err(Error::Conflict(format!(
            "network {name} belongs to someone else"
        )));
    }
    let subnets = details.ipam.config.iter().flatten();
    let wanted = &network.subnet;
    if !subnets.into_iter().any(|config| config.subnet == *wanted) {
        return Err(Error::Conflict(format!(
            "network {name} has other addresses than {wanted}"
        )));
    }
    without_strangers(ctx, network, &details)?;
    Ok(true)
}

/// Podman's Docker interface makes every network with a name server on the node, which the node's
/// rules keep instances from: there the request goes to Podman's own.
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
