//! Inputs of the tests.

use wharf_guest::{
    Blueprint, Content, File, Image, Network, Node, PublishedPort, Readiness, ResourceType, Secret,
    Size, Spec, Tag, Target,
};

pub const INSTALLATION: &str = "11111111-2222-4333-8444-555555555555";

pub fn node(settings: &str) -> Node {
    Node {
        name: "local".into(),
        installation: INSTALLATION.into(),
        settings: settings.into(),
        hint: String::new(),
    }
}

/// The `n`th instance of one owner.
pub fn spec(n: u8) -> Spec {
    let password = File {
        path: "/etc/wharf/first-boot/password".into(),
        mode: 0o600,
        uid: 0,
        gid: 0,
        content: Content::SecretCrypt(Secret::Password),
    };
    Spec {
        tag: Tag {
            instance: format!("00000000-0000-4000-8000-0000000000{n:02}"),
            incarnation: 1,
        },
        generation: 3,
        resource_type: ResourceType::Container,
        hostname: format!("calm-river-{n}"),
        size: Size {
            n_vcpus: 2,
            mem_gib: 4,
            disk_size_gib: 20,
        },
        network: Network {
            id: "owner1".into(),
            subnet: "10.80.0.0/28".into(),
            gateway: "10.80.0.1".into(),
            address: format!("10.80.0.{}", n + 1),
        },
        published: vec![PublishedPort {
            node_port: 20_000 + u16::from(n),
            instance_port: 22,
            private: false,
        }],
        public_network: None,
        wan_ports: Vec::new(),
        volumes: Vec::new(),
        gpu_devices: Vec::new(),
        source: None,
        fetched: false,
        may_exist: false,
        blueprint: Blueprint {
            images: vec![Image {
                engine_kind: "docker".into(),
                reference: "localhost/wharf/base:1".into(),
            }],
            files: vec![password],
            environment: vec![("LANG".into(), "C.UTF-8".into())],
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

/// The `n`th virtual machine of one owner.
pub fn vm(n: u8) -> Spec {
    Spec {
        resource_type: ResourceType::Vm,
        public_network: Some(Network {
            id: "0public".into(),
            subnet: "203.0.113.0/28".into(),
            gateway: "203.0.113.1".into(),
            address: format!("203.0.113.{}", n + 1),
        }),
        wan_ports: vec![22],
        ..spec(n)
    }
}

pub fn target(spec: &Spec) -> Target {
    Target {
        tag: spec.tag.clone(),
        generation: spec.generation + 1,
        resource_type: spec.resource_type,
        size: spec.size,
        network: spec.network.clone(),
        public_network: spec.public_network.clone(),
        wan_ports: spec.wan_ports.clone(),
        volumes: spec.volumes.clone(),
    }
}
