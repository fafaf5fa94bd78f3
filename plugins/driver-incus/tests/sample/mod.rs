//! A node, and an instance on it.

use wharf_guest::{
    Blueprint, Network, Node, PublishedPort, Readiness, ResourceType, Size, Spec, Tag, Target,
};

pub const ONE: &str = "00000000-0000-4000-8000-000000000001";

pub fn node() -> Node {
    Node {
        name: "n1".into(),
        installation: "11111111-2222-4333-8444-555555555555".into(),
        settings:
            r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9"}"#
                .into(),
        hint: String::new(),
    }
}

pub fn spec() -> Spec {
    Spec {
        tag: Tag {
            instance: ONE.into(),
            incarnation: 1,
        },
        generation: 7,
        resource_type: ResourceType::Container,
        hostname: "one".into(),
        size: Size {
            n_vcpus: 1,
            mem_gib: 2,
            disk_size_gib: 10,
        },
        network: Network {
            id: "one".into(),
            subnet: "10.79.0.0/16".into(),
            gateway: "10.79.0.1".into(),
            address: "10.79.0.5".into(),
        },
        published: vec![PublishedPort {
            node_port: 20_001,
            instance_port: 22,
            private: false,
        }],
        public_network: None,
        wan_ports: Vec::new(),
        gpu_devices: Vec::new(),
        volumes: Vec::new(),
        source: None,
        fetched: false,
        may_exist: true,
        blueprint: Blueprint {
            images: Vec::new(),
            files: Vec::new(),
            environment: Vec::new(),
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

pub fn target() -> Target {
    let spec = spec();
    Target {
        tag: spec.tag,
        generation: spec.generation,
        resource_type: spec.resource_type,
        size: spec.size,
        network: spec.network,
        public_network: None,
        wan_ports: Vec::new(),
        volumes: Vec::new(),
    }
}
