//! The bridge networks of owners, and that of public addresses.
//!
//! A network is created when the engine refuses a container for lack of it, and removed with its
//! last container. Both may happen at once for two instances of one owner; the call that finds the
//! network missing creates it again.

use crate::api::Reply;
use crate::api::model::{NetworkDetails, Summary, label};
use crate::context::Context;
use crate::create_body::Endpoint;
use crate::product::Product;
use crate::{libpod, names};
use serde_json::{Value, json};
use wharf_guest::{Error, Network, log};

/// Returns the name of a network. A public network may be the operator's own.
///
/// # Errors
/// When the engine does not answer.
pub fn name(ctx: &Context, network: &Network) -> Result<String, Error> {
    match &ctx.settings.public_network {
        Some(theirs) if is_public(network) => Ok(theirs.clone()),
        _ => Ok(names::network(&own_name(ctx, network)?)),
    }
}

/// Returns the part of a network's name that distinguishes it. A network of an earlier version keeps
/// its name, because the engine would refuse a second network with its addresses.
///
/// # Errors
/// When the engine does not answer.
pub fn own_name(ctx: &Context, network: &Network) -> Result<String, Error> {
    Ok(match has_earlier_name(ctx, network)? {
        true => names::earlier_name(network),
        false => names::own_name(ctx.installation, network),
    })
}

/// Returns the name of the network's bridge on the node.
///
/// # Errors
/// When the engine does not answer.
pub fn bridge(ctx: &Context, network: &Network) -> Result<String, Error> {
    Ok(names::bridge(&own_name(ctx, network)?))
}

fn has_earlier_name(ctx: &Context, network: &Network) -> Result<bool, Error> {
    if is_public(network) {
        return Ok(false);
    }
    if let Some(known) = ctx.has_earlier_name.get() {
        return Ok(known);
    }
    let name = names::network(&names::earlier_name(network));
    let found = match ctx.api.network_details(&name)? {
        Ok(details) => label(&details.labels, names::INSTALLATION) == Some(ctx.installation),
        Err(refusal) if refusal.is_not_found() => false,
        Err(refusal) => return Err(refusal.during("reading the network")),
    };
    ctx.has_earlier_name.set(Some(found));
    Ok(found)
}

fn is_public(network: &Network) -> bool {
    network.id.starts_with(names::PUBLIC_ID)
}

fn is_operators_own(ctx: &Context, network: &Network) -> bool {
    is_public(network) && ctx.settings.public_network.is_some()
}

/// Creates the network if it is missing and not the operator's. Docker detects a missing network late
/// in a start and then undoes the rest; a check in advance is much cheaper.
///
/// # Errors
/// [`Error::Conflict`] if a network with this name belongs to another installation, has other
/// addresses, or has containers of another owner. [`Error::Insufficient`] if another network has these
/// addresses, which is temporary if the engine is making or removing it.
pub fn create(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_operators_own(ctx, network) {
        return Ok(());
    }
    let mut taken = None;
    for _ in 0..3 {
        if is_right(ctx, network)? {
            return Ok(());
        }
        if ctx.has_earlier_name.take() == Some(true) {
            // It has vanished since the call began. Its successor has a name of this version.
            continue;
        }
        match make(ctx, network)? {
            Ok(()) => return Ok(()),
            Err(refusal) if refusal.is_name_taken() => {}
            // Docker reports this also while another call creates the network.
            Err(refusal) if refusal.is_subnet_taken() => taken = Some(refusal.message),
            Err(refusal) => return Err(refusal.during("creating the network")),
        }
    }
    let Some(taken) = taken else {
        return Err(Error::RetryLater(500));
    };
    log!(
        Warn,
        "the addresses {} are those of another network on the node ({taken}); give the node another \
         `lan_cidr` or `public_ipv4`",
        network.subnet
    );
    Err(Error::held(match is_public(network) {
        true => "public_ipv4",
        false => "lan_subnet",
    }))
}

/// Creates a network again whose bridge has vanished from the node. Containers that do not run find
/// the new one at their next start.
///
/// # Errors
/// [`Error::Conflict`] while other instances run on the network: the engine does not remove it.
pub fn remake(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_operators_own(ctx, network) {
        return Ok(());
    }
    let name = name(ctx, network)?;
    log!(
        Warn,
        "the bridge of network {name} has vanished; the network is made again"
    );
    match ctx.api.remove_network(&name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) if refusal.is_in_use() => {
            return Err(Error::Conflict(format!(
                "the bridge of network {name} has vanished from the node, and other instances are \
                 on the network; it is made again once they are stopped"
            )));
        }
        Err(refusal) => return Err(refusal.during("removing a network without a bridge")),
    }
    create(ctx, network)
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
            name(ctx, network)?
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
    let own_name = own_name(ctx, network)?;
    let labels = [
        (names::INSTALLATION, ctx.installation),
        (member, own_name.as_str()),
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
    let name = name(ctx, network)?;
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
    let off = json!({ "Container": container, "Force": true });
    let earlier = (!is_public(network)).then(|| names::network(&names::earlier_name(network)));
    for name in [name(ctx, network)?].into_iter().chain(earlier) {
        if let Err(refusal) = ctx.api.disconnect(&name, &off)? {
            log!(
                Debug,
                "container {container} was not on {name}: {}",
                refusal.message
            );
        }
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
    ctx.api.connect(&name(ctx, network)?, &body)
}

/// Checks the owner and the addresses of the network with this name. False if it is gone again.
fn is_right(ctx: &Context, network: &Network) -> Result<bool, Error> {
    let name = names::network(&own_name(ctx, network)?);
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
    let own_name = names::own_name(ctx.installation, network);
    if Product::of(ctx)?.is_podman() {
        let body = libpod::network(ctx.installation, &own_name, network);
        return ctx.api.create_network_libpod(&body);
    }
    ctx.api
        .create_network(&body(ctx.installation, &own_name, network))
}

fn body(installation: &str, own_name: &str, network: &Network) -> Value {
    json!({
        "Name": names::network(own_name),
        "Driver": "bridge",
        "CheckDuplicate": true,
        "Labels": { names::INSTALLATION: installation, names::OWNER: network.id },
        "IPAM": {
            "Driver": "default",
            "Config": [{ "Subnet": network.subnet, "Gateway": network.gateway }],
        },
        "Options": { "com.docker.network.bridge.name": names::bridge(own_name) },
    })
}
