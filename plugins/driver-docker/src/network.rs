//! The bridge networks of owners, and that of public addresses.
//!
//! A network is created when the engine refuses a container for lack of it, and removed with its
//! last container. Both may happen at once for two instances of one owner; the call that finds the
//! network missing creates it again.

use crate::api::Reply;
use crate::api::model::{NetworkDetails, Summary, label};
use crate::context::Context;
use crate::names;
use crate::product::Product;
use wharf_guest::{During, NamedRequest};
use wharf_guest::{Error, Network, log};

/// A network of the call, as the requests name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The owner's.
    Own,
    /// The owner's, with the name of an earlier version.
    Earlier,
    /// That of public addresses.
    Public,
}

impl Which {
    /// A request about the network.
    pub fn named(self, request: &str) -> NamedRequest {
        let word = match self {
            Self::Own => "own",
            Self::Earlier => "earlier",
            Self::Public => "public",
        };
        NamedRequest::new(request).with("network", word)
    }
}

/// Returns the request's word for a network. A network of an earlier version keeps its name, because
/// the engine would refuse a second network with its addresses.
pub fn which(ctx: &Context, network: &Network) -> Result<Which, Error> {
    if is_public(network) {
        return Ok(Which::Public);
    }
    let has_earlier_name = match ctx.has_earlier_name.get() {
        Some(known) => known,
        None => has_earlier_name(ctx)?,
    };
    ctx.has_earlier_name.set(Some(has_earlier_name));
    Ok(if has_earlier_name {
        Which::Earlier
    } else {
        Which::Own
    })
}

fn has_earlier_name(ctx: &Context) -> Result<bool, Error> {
    Ok(match ctx.api.network_details(Which::Earlier)? {
        Ok(details) => label(&details.labels, names::INSTALLATION) == Some(ctx.installation),
        Err(refusal) if refusal.is_not_found() => false,
        Err(refusal) => return Err(refusal.during("reading the network")),
    })
}

/// Returns the name of a network. A public network may be the operator's own.
pub fn name(ctx: &Context, network: &Network) -> Result<String, Error> {
    match &ctx.settings.public_network {
        Some(theirs) if is_public(network) => Ok(theirs.clone()),
        _ => ctx.api.network_name(which(ctx, network)?),
    }
}

/// Returns the name of the network's bridge on the node.
pub fn bridge(ctx: &Context, network: &Network) -> Result<String, Error> {
    let name = ctx.api.network_name(which(ctx, network)?)?;
    Ok(name.replacen("wharf-", "whf", 1))
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
            Err(refusal) if refusal.is_subnet_taken() => taken = Some(refusal.message.clone()),
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
    Err(Error::held(if is_public(network) {
        "public_ipv4"
    } else {
        "lan_subnet"
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
    match ctx.api.remove_network(which(ctx, network)?)? {
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
    ctx.api
        .members(which(ctx, network)?)?
        .during("listing a network's containers")
}

/// Removes the network if it has no container, not even a stopped one. Engines refer to a
/// container's network by its id, and would not accept a new network with its name.
pub fn remove_if_unused(ctx: &Context, network: &Network) -> Result<(), Error> {
    if is_operators_own(ctx, network) || !members(ctx, network)?.is_empty() {
        return Ok(());
    }
    match ctx.api.remove_network(which(ctx, network)?)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() || refusal.is_in_use() => {}
        Err(refusal) => {
            let name = name(ctx, network)?;
            log!(Warn, "network {name} is left behind: {}", refusal.message);
        }
    }
    Ok(())
}

/// Attaches a stopped container again, after its network was removed and created anew.
pub fn reattach(ctx: &Context, network: &Network, container: &str) -> Result<(), Error> {
    let earlier = (!is_public(network)).then_some(Which::Earlier);
    for which in [which(ctx, network)?].into_iter().chain(earlier) {
        if let Err(refusal) = ctx.api.disconnect(which, container)? {
            log!(
                Debug,
                "container {container} was not on its network ({which:?}): {}",
                refusal.message
            );
        }
    }
    attach(ctx, network, container)?.during(ATTACHING)
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
    ctx.api.connect(which(ctx, network)?, container)
}

/// Checks the owner and the addresses of the network with this name. False if it is gone again.
fn is_right(ctx: &Context, network: &Network) -> Result<bool, Error> {
    let which = which(ctx, network)?;
    let details = match ctx.api.network_details(which)? {
        Ok(details) => details,
        Err(refusal) if refusal.is_not_found() => return Ok(false),
        Err(refusal) => return Err(refusal.during("reading the network")),
    };
    let name = ctx.api.network_name(which)?;
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
    let which = if is_public(network) {
        Which::Public
    } else {
        Which::Own
    };
    if Product::of(ctx)?.is_podman() {
        return ctx.api.create_network_podman(which);
    }
    ctx.api.create_network(which)
}
