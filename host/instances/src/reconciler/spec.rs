//! The drivers' view of an instance, from its rows.

use crate::App;
use crate::content::content;
use crate::private_ports::has_private_page;
use crate::snapshots::{SOURCES, SourceRow};
use crate::volumes::driver_mounts;
use ipnet::Ipv4Net;
use sha2::{Digest, Sha256};
use std::net::Ipv4Addr;
use wharf_config::NodeConfig;
use wharf_db::{ProvisioningSpec, Rows as _};
use wharf_domain::blueprint::SSH_PORT;
use wharf_domain::driver::{DriverTarget, InstanceNetwork, PublishedPort, Spec, Tag};
use wharf_domain::error::Error;
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::placement::gateway;

/// Length of a network id. With the prefix of a driver it still fits an interface name.
const NETWORK_ID: usize = 11;

/// The tag of an instance's engine objects.
pub fn tag(instance: &Instance) -> Tag {
    Tag {
        instance: instance.id,
        incarnation: instance.incarnation,
    }
}

/// The target of calls for an existing instance.
pub fn target(app: &App, instance: &Instance) -> Result<DriverTarget, Error> {
    let config = app.config();
    let node = config.node.iter().find(|n| n.name == instance.node.0);
    let node =
        node.ok_or_else(|| Error::internal(format!("node {} is not configured", instance.node)))?;
    let subnet = Ipv4Net::new(instance.lan_ipv4, node.lan_subnet_prefix)
        .map_err(|e| Error::caused("lan_subnet_prefix", e))?
        .trunc();
    let public_network = instance
        .public_ipv4
        .map(|address| public_network(&app.installation, node, address))
        .transpose();
    let public_network = match instance.intent {
        // A network that is no longer configured must not prevent a stop or a deletion.
        Intent::Delete | Intent::Stop => public_network.ok().flatten(),
        Intent::Run | Intent::Start => public_network?,
    };
    Ok(DriverTarget {
        tag: tag(instance),
        generation: instance.generation,
        resource_type: instance.resource_type,
        size: instance.size,
        network: InstanceNetwork {
            id: network_id(&app.installation, &instance.owner.0.to_string()),
            subnet,
            gateway: gateway(subnet),
            address: instance.lan_ipv4,
        },
        public_network,
        wan_ports: instance.wan_ports.clone(),
        volumes: app.db.read(|rows| driver_mounts(rows, instance.id))?,
    })
}

/// The specification of an instance. `may_exist` tells the driver of an earlier request.
pub fn spec(
    app: &App,
    target: DriverTarget,
    instance: &Instance,
    provisioning_spec: ProvisioningSpec,
    may_exist: bool,
) -> Result<Spec, Error> {
    let (web_is_private, source, content) = app.db.read(|rows| {
        let web_is_private = has_private_page(rows, instance.id)?;
        let source = rows.get(&SOURCES, instance.id)?;
        Ok::<_, Error>((web_is_private, source, content(rows, instance.id)?))
    })?;
    let ssh = provisioning_spec.blueprint.ssh.then_some(PublishedPort {
        node_port: instance.ssh_port,
        instance_port: SSH_PORT,
        private: !instance.ssh,
    });
    let web = instance
        .web_port
        .zip(provisioning_spec.blueprint.web_port)
        .map(|(node_port, instance_port)| PublishedPort {
            node_port,
            instance_port,
            private: web_is_private,
        });
    Ok(Spec {
        target,
        hostname: provisioning_spec.hostname,
        published: ssh.into_iter().chain(web).collect(),
        private_address: app.private_address(&instance.node),
        gpu_devices: instance.gpus.iter().map(|g| g.device.clone()).collect(),
        source: source.as_ref().map(SourceRow::driver_source),
        fetched: content.is_some() && !instance.provisioned,
        may_exist,
        image_is_trusted: app.plugins().has_trusted_images(&instance.flavor),
        blueprint: provisioning_spec.blueprint,
    })
}

/// The node's public network that contains an address.
fn public_network(
    installation: &str,
    node: &NodeConfig,
    address: Ipv4Addr,
) -> Result<InstanceNetwork, Error> {
    let subnet = node.public_ipv4.iter().find(|net| net.contains(&address));
    let subnet = subnet.ok_or_else(|| {
        let name = &node.name;
        Error::internal(format!(
            "public_ipv4 of node {name} no longer has {address}"
        ))
    })?;
    let mut id = network_id(installation, &subnet.to_string());
    id.replace_range(..1, InstanceNetwork::PUBLIC);
    Ok(InstanceNetwork {
        id,
        subnet: *subnet,
        gateway: gateway(*subnet),
        address,
    })
}

/// The id of an owner's or a public network. It differs between installations on one engine.
fn network_id(installation: &str, whose: &str) -> String {
    // Public networks begin with a digit that is not among these.
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let hash = Sha256::digest(format!("{installation}/{whose}"));
    hash.iter()
        .take(NETWORK_ID)
        .filter_map(|byte| DIGITS.get(usize::from(byte % 32)))
        .map(|digit| char::from(*digit))
        .collect()
}
