//! The network of an owner in OVN mode. It spans the members, and its first instance makes it.

use crate::api::model;
use crate::context::Context;
use crate::names;
use crate::settings::Mode;
use wharf_guest::{Error, Network, log};

/// Delay while the engine makes or removes a network, ms.
const NETWORK_AGAIN_MS: u32 = 1_000;
/// Delay while another owner's instances use a network with these addresses, ms.
const USED_AGAIN_MS: u32 = 5_000;
/// The state of a network that all members have.
const CREATED: &str = "Created";
/// The state of a network in creation.
const PENDING: &str = "Pending";

/// The first key in which a network differs from the wanted one; Incus adds keys of its own.
fn difference<'a>(wanted: &'a model::Network, found: &model::Network) -> Option<&'a str> {
    let mut keys = wanted.config.iter();
    let (key, _) = keys.find(|(key, value)| found.config.get(*key) != Some(value))?;
    Some(key)
}

/// Makes the network of an owner, unless the cluster has it. Addresses of a former owner may have left a
/// network, and an interrupted creation a broken one: both are replaced.
///
/// # Errors
/// [`Error::RetryLater`] while the cluster is at work, or another owner's instances use the network.
pub fn ensure(ctx: &Context, network: &Network) -> Result<(), Error> {
    let Mode::Ovn(_) = &ctx.settings.mode else {
        return Ok(());
    };
    let wanted = ctx.api.owner_network_to_be()?;
    let Some(found) = look(ctx)? else {
        return make(ctx, &wanted);
    };
    let name = names::network(ctx.installation, &network.gateway);
    let why = match (found.status.as_str(), difference(&wanted, &found)) {
        (CREATED, None) => return Ok(()),
        (PENDING, _) => return Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        (CREATED, Some(key)) => format!("another {key}"),
        (status, _) => format!("the status {status}"),
    };
    log!(Warn, "the network {name} has {why}; it is made again");
    match ctx.api.remove_network(&name)? {
        Ok(()) => {}
        Err(refusal) if refusal.is_not_found() => {}
        Err(refusal) => {
            log!(
                Warn,
                "the network {name} cannot be removed: {}",
                refusal.message
            );
            return Err(Error::RetryLater(USED_AGAIN_MS));
        }
    }
    make(ctx, &wanted)
}

/// A race and a repetition are refused in words that differ, so the network itself tells the result.
fn make(ctx: &Context, wanted: &model::Network) -> Result<(), Error> {
    let Err(refusal) = ctx.api.create_network()? else {
        return Ok(());
    };
    match look(ctx)? {
        Some(found) if found.status == CREATED && difference(wanted, &found).is_none() => Ok(()),
        Some(found) if found.status == PENDING => Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        // A removal overtook the creation.
        None if refusal.is_not_found() => Err(Error::RetryLater(NETWORK_AGAIN_MS)),
        _ => Err(refusal.during("creating the network of the owner")),
    }
}

fn look(ctx: &Context) -> Result<Option<model::Network>, Error> {
    match ctx.api.owner_network()? {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if refusal.is_not_found() => Ok(None),
        Err(refusal) => Err(refusal.during("reading the network of the owner")),
    }
}

/// Whether the network has gone since [`ensure`]: a removal of the owner's last instance was on its way.
pub fn has_gone(ctx: &Context) -> Result<bool, Error> {
    match &ctx.settings.mode {
        Mode::Bridge => Ok(false),
        Mode::Ovn(_) => Ok(look(ctx)?.is_none()),
    }
}

/// Removes a network, unless instances use it. One that stays is replaced by the next owner of its addresses.
pub fn remove(ctx: &Context, name: &str) -> Result<(), Error> {
    match ctx.api.remove_network(name)? {
        Err(refusal) if !refusal.is_not_found() && !refusal.is_in_use() => {
            log!(Warn, "the network {name} stays: {}", refusal.message);
        }
        Ok(()) | Err(_) => {}
    }
    Ok(())
}
