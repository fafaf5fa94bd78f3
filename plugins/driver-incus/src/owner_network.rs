//! The network of an owner in OVN mode. It spans the members, and its first instance makes it.

use crate::api::model;
use crate::context::Context;
use crate::names;
use crate::settings::{Mode, Ovn};
use serde::Serialize;
use std::collections::BTreeMap;
use wharf_guest::{Error, Network, log};

/// Delay while the engine makes or removes a network, ms.
const NETWORK_AGAIN_MS: u32 = 1_000;
/// Delay while another owner's instances use a network with these addresses, ms.
const USED_AGAIN_MS: u32 = 5_000;
/// The state of a network that all members have.
const CREATED: &str = "Created";
/// The state of a network in creation.
const PENDING: &str = "Pending";

/// `POST /1.0/networks`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Creation {
    name: String,
    r#type: &'static str,
    config: BTreeMap<&'static str, String>,
}

impl Creation {
    /// Builds the body for the network of an owner.
    #[must_use]
    pub fn new(ctx: &Context, ovn: &Ovn, network: &Network) -> Self {
        Self {
            name: names::network(ctx.installation, &network.gateway),
            r#type: "ovn",
            config: [
                ("network", ovn.uplink.clone()),
                (
                    "ipv4.address",
                    format!("{}/{}", network.gateway, prefix(network)),
                ),
                ("ipv4.nat", "true".to_owned()),
                // Without it, the network gets a range of its own.
                ("ipv6.address", "none".to_owned()),
                ("security.acls", ovn.acl.clone()),
                (names::OWNER, network.id.clone()),
            ]
            .into(),
        }
    }

    /// The first key in which a network differs; Incus adds keys of its own.
    fn difference(&self, found: &model::Network) -> Option<&'static str> {
        let mut keys = self.config.iter();
        let (key, _) = keys.find(|(key, value)| found.config.get(**key) != Some(value))?;
        Some(key)
    }
}

/// The length of the prefix of a network's range.
#[must_use]
pub fn prefix(network: &Network) -> &str {
    let parts = network.subnet.rsplit_once('/');
    parts.map_or("32", |(_, prefix)| prefix)
}

/// Makes the network of an owner, unless the cluster has it. Addresses of a former owner may have left a
/// network, and an interrupted creation a broken one: both are replaced.
///
/// # Errors
/// [`Error::RetryLater`] while the cluster is at work, or another owner's instances use the network.
pub fn ensure(ctx: &Context, network: &Network) -> Result<(), Error> {
    let Mode::Ovn(ovn) = &ctx.settings.mode else {
        return Ok(());
    };
    let wanted = Creation::new(ctx, ovn, network);
    let Some(found) = look(ctx, &wanted.name)? else {
        return make(ctx, &wanted);
    };
    let why = match (found.status.as_str(), wanted.difference(&found)) {
        (CREATED, None) => return Ok(()),
        (PENDING, _) => return Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        (CREATED, Some(key)) => format!("another {key}"),
        (status, _) => format!("the status {status}"),
    };
    log!(
        Warn,
        "the network {} has {why}; it is made again",
        wanted.name
    );
    match ctx.api.remove_network(&wanted.name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) => {
            log!(
                Warn,
                "the network {} cannot be removed: {}",
                wanted.name,
                refusal.message
            );
            return Err(Error::RetryLater(USED_AGAIN_MS));
        }
    }
    make(ctx, &wanted)
}

/// A race and a repetition are refused in words that differ, so the network itself tells the result.
fn make(ctx: &Context, wanted: &Creation) -> Result<(), Error> {
    let Err(refusal) = ctx.api.create_network(wanted)? else {
        return Ok(());
    };
    match look(ctx, &wanted.name)? {
        Some(found) if found.status == CREATED && wanted.difference(&found).is_none() => Ok(()),
        Some(found) if found.status == PENDING => Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        // A removal overtook the creation.
        None if refusal.is_not_found() => Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        _ => Err(refusal.during("creating the network of the owner")),
    }
}

fn look(ctx: &Context, name: &str) -> Result<Option<model::Network>, Error> {
    match ctx.api.network(name)? {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if refusal.is_not_found() => Ok(None),
        Err(refusal) => Err(refusal.during("reading the network of the owner")),
    }
}

/// Whether the network has gone since [`ensure`]: a removal of the owner's last instance was on its way.
///
/// # Errors
/// When the engine does not answer.
pub fn has_gone(ctx: &Context, network: &Network) -> Result<bool, Error> {
    match &ctx.settings.mode {
        Mode::Bridge(_) => Ok(false),
        Mode::Ovn(_) => {
            let name = names::network(ctx.installation, &network.gateway);
            Ok(look(ctx, &name)?.is_none())
        }
    }
}

/// Removes a network, unless instances use it. One that stays is replaced by the next owner of its addresses.
///
/// # Errors
/// When the engine does not answer.
pub fn remove(ctx: &Context, name: &str) -> Result<(), Error> {
    match ctx.api.remove_network(name)? {
        Err(refusal) if !refusal.is_not_found() && !refusal.is_in_use() => {
            log!(Warn, "the network {name} stays: {}", refusal.message);
        }
        Ok(()) | Err(_) => {}
    }
    Ok(())
}
