//! The scopes of calls, as the host has them.

use wharf_domain::blueprint::{self, Blueprint};
use wharf_domain::capacity;
use wharf_domain::driver;
use wharf_domain::ids::{Generation, InstanceId};
use wharf_domain::instance;
use wharf_domain::secret::SecretKind;
use wharf_guest::{Content, File, Network, Node, ResourceType, Spec, Tag, Target};
use wharf_requests::CallScope;

/// The scope of a call that creates an instance.
pub fn create(node: &Node, spec: &Spec) -> CallScope {
    let blueprint = &spec.blueprint;
    let images = blueprint.images.iter().map(|image| blueprint::Image {
        engine_kind: image.engine_kind.clone(),
        reference: image.reference.clone(),
    });
    let published = spec.published.iter().map(|port| driver::PublishedPort {
        node_port: port.node_port,
        instance_port: port.instance_port,
    });
    let made = driver::Spec {
        target: target_of(&Target {
            tag: spec.tag.clone(),
            generation: spec.generation,
            resource_type: spec.resource_type,
            size: spec.size,
            network: spec.network.clone(),
            public_network: spec.public_network.clone(),
            wan_ports: spec.wan_ports.clone(),
        }),
        hostname: spec.hostname.clone(),
        published: published.collect(),
        gpu_devices: spec.gpu_devices.clone(),
        may_exist: spec.may_exist,
        blueprint: Blueprint {
            images: images.collect(),
            files: blueprint.files.iter().map(file).collect(),
            environment: blueprint.environment.clone(),
            command: blueprint.command.clone(),
            health: blueprint::Health::Ssh,
            ssh: true,
            web_port: None,
        }
        .into(),
    };
    CallScope::create(&node.installation, &made, driver_docker::ENGINE_KIND)
}

/// The scope of a call that changes an instance.
pub fn change(node: &Node, target: &Target) -> CallScope {
    CallScope::change(&node.installation, &target_of(target))
}

/// The scope of a call that reads an instance.
pub fn read(node: &Node, tag: &Tag) -> CallScope {
    CallScope::read(&node.installation, tag_of(tag))
}

fn target_of(target: &Target) -> driver::Target {
    driver::Target {
        tag: tag_of(&target.tag),
        generation: Generation(target.generation),
        resource_type: match target.resource_type {
            ResourceType::Container => instance::ResourceType::Container,
            ResourceType::Vm => instance::ResourceType::Vm,
        },
        size: capacity::Size {
            n_vcpus: target.size.n_vcpus,
            mem_gib: target.size.mem_gib,
            disk_size_gib: target.size.disk_size_gib,
        },
        network: network_of(&target.network),
        public_network: target.public_network.as_ref().map(network_of),
        wan_ports: target.wan_ports.clone(),
    }
}

fn tag_of(tag: &Tag) -> driver::Tag {
    driver::Tag {
        instance: InstanceId::parse(&tag.instance).unwrap(),
        incarnation: tag.incarnation,
    }
}

fn network_of(network: &Network) -> driver::Network {
    driver::Network {
        id: network.id.clone(),
        subnet: network.subnet.parse().unwrap(),
        gateway: network.gateway.parse().unwrap(),
        address: network.address.parse().unwrap(),
    }
}

fn file(file: &File) -> blueprint::File {
    blueprint::File {
        path: file.path.clone(),
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
        content: match &file.content {
            Content::Bytes(bytes) => blueprint::Content::Bytes(bytes.clone()),
            _ => blueprint::Content::SecretCrypt(SecretKind::Password),
        },
    }
}
