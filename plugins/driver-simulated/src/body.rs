//! Request bodies for the simulated engine.

use crate::KIND;
use serde::Serialize;
use wharf_guest::{Error, Node, ResourceType, Size, Spec};

/// The body of a creation.
#[derive(Debug, Serialize)]
pub struct Create<'a> {
    installation: &'a str,
    incarnation: u64,
    kind: &'static str,
    hostname: &'a str,
    image: &'a str,
    address: &'a str,
    node_ports: Vec<u16>,
    gpus: &'a [String],
    #[serde(flatten)]
    size: Sizes,
}

/// vCPUs, RAM and disk of an instance.
#[derive(Debug, Serialize)]
pub struct Sizes {
    n_vcpus: u32,
    mem_gib: u32,
    disk_size_gib: u32,
}

/// Builds the body of a creation.
pub fn create<'a>(node: &'a Node, spec: &'a Spec) -> Result<Create<'a>, Error> {
    let image = spec
        .blueprint
        .images
        .iter()
        .find(|image| image.engine_kind == KIND)
        .ok_or_else(|| {
            Error::Unsupported(format!("the blueprint has no image for {KIND} engines"))
        })?;
    Ok(Create {
        installation: &node.installation,
        incarnation: spec.tag.incarnation,
        kind: match spec.resource_type {
            ResourceType::Vm => "vm",
            ResourceType::Container => "container",
        },
        hostname: &spec.hostname,
        image: &image.reference,
        address: &spec.network.address,
        node_ports: spec.published.iter().map(|port| port.node_port).collect(),
        gpus: &spec.gpu_devices,
        size: resize(spec.size),
    })
}

/// Builds the body of a start or a resize.
pub fn resize(size: Size) -> Sizes {
    Sizes {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}
