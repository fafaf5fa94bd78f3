//! Conversion between the bindings and the domain. Every value from a guest is checked here, and trusted
//! afterwards.

pub mod blueprint;
pub mod driver;
pub mod error;
pub mod flavor;
pub mod text;

use super::bindings::types as wit;
use crate::domain::capacity::Size;
use crate::domain::driver::PluginError;
use crate::domain::instance::ResourceType;

fn resource_type_to_guest(kind: ResourceType) -> wit::ResourceType {
    match kind {
        ResourceType::Vm => wit::ResourceType::Vm,
        ResourceType::Container => wit::ResourceType::Container,
    }
}

fn resource_type_from_guest(kind: wit::ResourceType) -> ResourceType {
    match kind {
        wit::ResourceType::Vm => ResourceType::Vm,
        wit::ResourceType::Container => ResourceType::Container,
    }
}

fn size_to_guest(size: Size) -> wit::Size {
    wit::Size {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}

fn size_from_guest(size: wit::Size) -> Size {
    Size {
        n_vcpus: size.n_vcpus,
        mem_gib: size.mem_gib,
        disk_size_gib: size.disk_size_gib,
    }
}

/// The error for an invalid answer.
fn nonsense(what: impl Into<String>) -> PluginError {
    PluginError::Fault(format!("nonsense answer: {}", what.into()))
}
