//! The owner's private network and the network of public addresses.

use super::settings::Settings;
use super::{PREFIX, own_container, refuse, subject};
use crate::policy::Refusal;
use crate::policy::json::{Node, required};
use serde_json::Value;
use std::net::Ipv4Addr;
use wharf_domain::driver::Network;
use wharf_requests::CallScope;

/// The network of the call.
pub fn of(scope: &CallScope) -> Result<&Network, Refusal> {
    subject(scope)?
        .network
        .as_ref()
        .ok_or_else(|| refuse("this call has no network"))
}

/// Its name on the engine.
pub fn name(scope: &CallScope, network: &Network) -> String {
    format!("{PREFIX}{}", own_name(scope, network))
}

/// The name that earlier versions gave to an owner's network. It goes on, but none is made.
fn earlier_name(network: &Network) -> Option<String> {
    let subnet = network.subnet;
    let (address, prefix) = (u32::from(subnet.network()), subnet.prefix_len());
    (!network.is_public()).then(|| format!("{PREFIX}n{address:08x}{prefix:02x}"))
}

/// Whether the network has this name.
pub fn is_called(scope: &CallScope, network: &Network, given: &str) -> bool {
    name(scope, network) == given || earlier_name(network).as_deref() == Some(given)
}

/// The name of its bridge on the node, for the node's rules.
fn bridge(scope: &CallScope, network: &Network) -> String {
    format!("whf{}", own_name(scope, network))
}

/// Characters of the installation's id in a name, which leaves room in the name of an interface.
const INSTALLATION_END: usize = 3;

/// The name is the id of a public network. That of an owner's network has the addresses and the end of
/// the installation's id, because installations on one machine must not share a bridge.
fn own_name(scope: &CallScope, network: &Network) -> String {
    if network.is_public() {
        return network.id.clone();
    }
    let id = scope.installation.chars().rev();
    let end: Vec<char> = id.filter(char::is_ascii_alphanumeric).collect();
    let end = end.iter().take(INSTALLATION_END).rev().collect::<String>();
    format!("n{:08x}{end}", u32::from(network.subnet.network()))
}

/// The names of the networks of the call.
pub fn names(scope: &CallScope) -> Result<Vec<String>, Refusal> {
    let networks = [of(scope)?]
        .into_iter()
        .chain(&subject(scope)?.public_network);
    let names = networks.flat_map(|network| {
        [name(scope, network)]
            .into_iter()
            .chain(earlier_name(network))
    });
    Ok(names.collect())
}

/// The names of the networks that the instance's container may be connected to.
pub fn joined_names(scope: &CallScope, settings: &Settings) -> Result<Vec<String>, Refusal> {
    let mut names = names(scope)?;
    if subject(scope)?.public_network.is_some() {
        names.extend(settings.public_network.clone());
    }
    Ok(names)
}

/// The network of the call with this name.
fn own<'a>(scope: &'a CallScope, given: &str) -> Result<&'a Network, Refusal> {
    let private = of(scope)?;
    [private]
        .into_iter()
        .chain(&subject(scope)?.public_network)
        .find(|network| is_called(scope, network, given))
        .ok_or_else(|| {
            let own = name(scope, private);
            refuse(format!("network {given:?}; this call is for {own}"))
        })
}

/// The network of the call with this name, for attaching its container. A public network may be the
/// operator's.
pub fn joined<'a>(
    scope: &'a CallScope,
    given: &str,
    settings: &Settings,
) -> Result<&'a Network, Refusal> {
    match &subject(scope)?.public_network {
        Some(public) if settings.public_network.as_deref() == Some(given) => Ok(public),
        _ => own(scope, given),
    }
}

/// The network that a body creates.
fn named<'a>(body: &Value, key: &str, scope: &'a CallScope) -> Result<&'a Network, Refusal> {
    let given = body.get(key).and_then(Value::as_str);
    own(scope, given.unwrap_or_default())
}

/// Checks the body of a creation.
pub fn create(body: &Value, scope: &CallScope) -> Result<(), Refusal> {
    let network = named(body, "Name", scope)?;
    for (key, member) in Node::root(body).members()? {
        match key {
            "Name" => member.is(&name(scope, network))?,
            "Driver" => member.is("bridge")?,
            "CheckDuplicate" => member.bool()?,
            "Internal" | "EnableIPv6" | "Attachable" | "Ingress" | "ConfigOnly" => {
                member.is_bool(false)?
            }
            "Labels" => labels(&member, scope)?,
            "Options" => options(&member, &bridge(scope, network))?,
            "IPAM" => ipam(&member, network)?,
            _ => return member.unlisted(),
        }
    }
    for pointer in [
        "/Name",
        "/Driver",
        "/Labels",
        "/IPAM/Config/0/Subnet",
        "/Options/com.docker.network.bridge.name",
    ] {
        required(body, pointer)?;
    }
    Ok(())
}

/// Checks the body of a creation on Podman's own path.
pub fn create_libpod(body: &Value, scope: &CallScope) -> Result<(), Refusal> {
    let network = named(body, "name", scope)?;
    for (key, member) in Node::root(body).members()? {
        match key {
            "name" => member.is(&name(scope, network))?,
            "driver" => member.is("bridge")?,
            "network_interface" => member.is(&bridge(scope, network))?,
            "internal" | "ipv6_enabled" | "dns_enabled" => member.is_bool(false)?,
            "labels" => labels(&member, scope)?,
            "options" => {
                for (key, member) in member.members()? {
                    match key {
                        "isolate" => member.is("true")?,
                        _ => return member.unlisted(),
                    }
                }
            }
            "subnets" => subnets(&member, network, ["subnet", "gateway"])?,
            _ => return member.unlisted(),
        }
    }
    for pointer in [
        "/name",
        "/driver",
        "/labels",
        "/subnets/0/subnet",
        "/network_interface",
    ] {
        required(body, pointer)?;
    }
    Ok(())
}

/// Checks the body that connects or disconnects a container: it must be the call's own.
pub fn attach(body: &Value, scope: &CallScope, network: &Network) -> Result<(), Refusal> {
    for (key, member) in Node::root(body).members()? {
        match key {
            "Container" => own_container(scope, member.text()?)?,
            "Force" => member.bool()?,
            "EndpointConfig" => endpoint(&member, network)?,
            _ => return member.unlisted(),
        }
    }
    required(body, "/Container")
}

/// Requires an address: an engine might choose that of another instance.
pub fn addressed(body: &Value) -> Result<(), Refusal> {
    required(body, "/EndpointConfig/IPAMConfig/IPv4Address")
}

/// Checks an endpoint's configuration: only the instance's own addresses.
pub fn endpoint(config: &Node<'_>, network: &Network) -> Result<(), Refusal> {
    for (key, member) in config.members()? {
        match key {
            "IPAMConfig" => {
                for (key, member) in member.members()? {
                    match key {
                        "IPv4Address" => member.is(&network.address.to_string())?,
                        _ => return member.unlisted(),
                    }
                }
            }
            "MacAddress" => member.is(&mac(network.address))?,
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

/// The hardware address of an address. With another one, an endpoint would get foreign packets.
fn mac(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

fn labels(labels: &Node<'_>, scope: &CallScope) -> Result<(), Refusal> {
    let mut owned = false;
    for (key, member) in labels.members()? {
        match key {
            "io.wharf.installation" => {
                member.is(&scope.installation)?;
                owned = true;
            }
            _ if key.starts_with("io.wharf.") => {
                member.text()?;
            }
            _ => return member.unlisted(),
        }
    }
    if owned {
        Ok(())
    } else {
        Err(labels.refuse("io.wharf.installation is required"))
    }
}

fn options(options: &Node<'_>, bridge: &str) -> Result<(), Refusal> {
    for (key, member) in options.members()? {
        match key {
            "com.docker.network.bridge.name" => member.is(bridge)?,
            "com.docker.network.bridge.enable_icc"
            | "com.docker.network.bridge.enable_ip_masquerade"
            | "isolate" => {
                member.one_of(&["true", "false"])?;
            }
            "com.docker.network.driver.mtu" => {
                if member.text()?.parse::<u16>().is_err() {
                    return Err(member.refuse("not a size of packets"));
                }
            }
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

fn ipam(ipam: &Node<'_>, network: &Network) -> Result<(), Refusal> {
    for (key, member) in ipam.members()? {
        match key {
            "Driver" => member.one_of(&["default", "host-local"])?,
            "Config" => subnets(&member, network, ["Subnet", "Gateway"])?,
            _ => return member.unlisted(),
        }
    }
    Ok(())
}

/// Checks the one subnet, with the interface's keys for the subnet and its gateway.
fn subnets(list: &Node<'_>, network: &Network, keys: [&str; 2]) -> Result<(), Refusal> {
    let [subnet, gateway] = keys;
    for (at, config) in list.items()?.enumerate() {
        if at > 0 {
            return Err(list.refuse("one subnet only"));
        }
        for (key, member) in config.members()? {
            if key == subnet {
                member.is(&network.subnet.to_string())?;
            } else if key == gateway {
                member.is(&network.gateway.to_string())?;
            } else {
                return member.unlisted();
            }
        }
    }
    Ok(())
}
