//! From rows to what a driver is told.

use crate::app::App;
use crate::db::Detail;
use crate::domain::driver::{Network, PublishedPort, Spec, Tag, Target};
use crate::domain::error::Error;
use crate::domain::ids::UserId;
use crate::domain::instance::Instance;
use crate::placement::gateway;
use ipnet::Ipv4Net;
use sha2::{Digest, Sha256};

/// Where SSH listens inside.
const SSH: u16 = 22;

/// Digits of a network id: with the prefix that drivers put before it, an interface name.
const NETWORK_ID: usize = 11;

/// The label of an instance's engine objects.
pub fn tag(instance: &Instance) -> Tag {
    Tag {
        instance: instance.id,
        incarnation: instance.incarnation,
    }
}

/// An existing instance, as its row wants it.
pub fn target(app: &App, instance: &Instance) -> Result<Target, Error> {
    let node = app.config.node.iter().find(|n| n.name == instance.node.0);
    let prefix = node
        .map(|n| n.lan_subnet_prefix)
        .ok_or_else(|| Error::Internal(format!("node {} is not configured", instance.node)))?;
    let subnet = Ipv4Net::new(instance.lan_ipv4, prefix)
        .map_err(|e| Error::Internal(e.to_string()))?
        .trunc();
    Ok(Target {
        tag: tag(instance),
        generation: instance.generation,
        resource_type: instance.resource_type,
        size: instance.size,
        network: Network {
            id: network_id(&app.installation, instance.owner),
            subnet,
            gateway: gateway(subnet),
            address: instance.lan_ipv4,
        },
        public_ipv4: instance.public_ipv4,
        wan_ports: instance.wan_ports.clone(),
    })
}

/// A new instance.
pub fn spec(target: Target, instance: &Instance, detail: Detail) -> Spec {
    let ssh = detail.blueprint.ssh.then_some(PublishedPort {
        node_port: instance.ssh_port,
        instance_port: SSH,
    });
    let web = instance
        .web_port
        .zip(detail.blueprint.web_port)
        .map(|(node_port, instance_port)| PublishedPort {
            node_port,
            instance_port,
        });
    Spec {
        target,
        hostname: detail.hostname,
        published: ssh.into_iter().chain(web).collect(),
        gpu_devices: instance.gpus.iter().map(|g| g.device.clone()).collect(),
        blueprint: detail.blueprint,
    }
}

/// The same for all of an owner's instances, different between installations on one engine.
fn network_id(installation: &str, owner: UserId) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let hash = Sha256::digest(format!("{installation}/{}", owner.0));
    hash.iter()
        .take(NETWORK_ID)
        .filter_map(|byte| DIGITS.get(usize::from(byte % 32)))
        .map(|digit| char::from(*digit))
        .collect()
}
