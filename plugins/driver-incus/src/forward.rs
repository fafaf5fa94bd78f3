//! Published ports in OVN mode: a forward for each, at an address of its own. Its tag is the instance.

use crate::context::Context;
use crate::names;
use crate::settings::Mode;
use wharf_guest::{During, Error, Spec, log};

/// Delay before another attempt to remove a forward, ms.
const REMOVAL_AGAIN_MS: u32 = 2_000;

/// Publishes the ports of an instance.
///
/// # Errors
/// [`Error::Insufficient`] if another network has an address of the instance's ports.
pub fn publish(ctx: &Context, spec: &Spec) -> Result<(), Error> {
    let Mode::Ovn(ovn) = &ctx.settings.mode else {
        return Ok(());
    };
    for port in &spec.published {
        let address = ovn.publish.address(port.node_port).ok_or_else(|| {
            let message = format!("has no address for the port {}", port.node_port);
            Error::invalid("settings.publish_cidr", message)
        })?;
        match ctx.api.create_forward(port.node_port)? {
            Ok(()) => {}
            Err(refusal) if refusal.is_overlap() => {
                log!(
                    Warn,
                    "{address} for the port {}: {}",
                    port.node_port,
                    refusal.message
                );
                return Err(Error::held_port(port.node_port));
            }
            // Two creations of one forward at once would block it, so there is no other than this one.
            Err(refusal) if refusal.status == 409 => {
                ctx.api
                    .replace_forward(port.node_port)?
                    .during("changing a forward")?;
            }
            Err(refusal) => return Err(refusal.during("publishing a port")),
        }
    }
    Ok(())
}

/// Removes the forwards of an instance from a network. One that stayed would lead to the next instance with
/// the address.
///
/// # Errors
/// [`Error::RetryLater`] if the engine keeps one.
pub fn withdraw(ctx: &Context, network: &str, instance: &str) -> Result<(), Error> {
    let mut refused = false;
    for address in own(ctx, network, instance)? {
        match ctx.api.remove_forward(network, &address)? {
            Ok(()) => {}
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) => {
                refused = true;
                log!(Warn, "removing the forward {address}: {}", refusal.message);
            }
        }
    }
    // A refusal because of a member that is down does not keep the forward.
    if !refused || own(ctx, network, instance)?.is_empty() {
        Ok(())
    } else {
        Err(Error::RetryLater(REMOVAL_AGAIN_MS))
    }
}

/// The addresses of an instance's forwards; none if there is no such network.
fn own(ctx: &Context, network: &str, instance: &str) -> Result<Vec<String>, Error> {
    let forwards = match ctx.api.forwards(network)? {
        Ok(forwards) => forwards,
        Err(refusal) if refusal.is_not_found() => return Ok(Vec::new()),
        Err(refusal) => return Err(refusal.during("listing the forwards")),
    };
    let is_own = |tag: Option<&String>| tag.is_some_and(|tag| tag == instance);
    let own = forwards
        .into_iter()
        .filter(|forward| is_own(forward.config.get(names::INSTANCE)));
    Ok(own.map(|forward| forward.listen_address).collect())
}
