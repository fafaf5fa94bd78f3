//! Validated requests. Only [`super::draft`] makes a [`CreateRequest`].

use super::backup::ContentOf;
use super::capacity::{CpuTier, Size};
use super::error::FieldErrors;
use super::flavor::Flavor;
use super::ids::SnapshotId;
use super::instance::{Instance, ResourceType};
use super::name::Name;
use super::secret::InstanceSecrets;
use super::volume::MountRequest;
use std::sync::Arc;

/// A request to create an instance.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// Generated when absent.
    pub name: Option<Name>,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Size.
    pub size: Size,
    /// Tier.
    pub cpu_tier: CpuTier,
    /// Flavor; it allows the resource type, the size and the secrets of this request.
    pub flavor: Arc<Flavor>,
    /// Model of the one GPU, if any.
    pub gpu_model: Option<String>,
    /// One OpenSSH public key line.
    pub public_key: Option<String>,
    /// S3 and AI secrets.
    pub secrets: InstanceSecrets,
    /// Volumes; containers only.
    pub volumes: Vec<MountRequest>,
    /// The snapshot that the disk is made from.
    pub source: Option<SnapshotId>,
    /// The backup that the content of the disk comes from.
    pub content: Option<ContentOf>,
}

/// A request to change an instance; an absent field stays as it is.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// New name.
    pub name: Option<Name>,
    /// New vCPUs.
    pub n_vcpus: Option<u32>,
    /// New RAM, GiB.
    pub mem_gib: Option<u32>,
    /// New disk, GiB.
    pub disk_size_gib: Option<u32>,
}

impl UpdateRequest {
    /// The size after the change.
    pub fn size_over(&self, present: Size) -> Size {
        Size {
            n_vcpus: self.n_vcpus.unwrap_or(present.n_vcpus),
            mem_gib: self.mem_gib.unwrap_or(present.mem_gib),
            disk_size_gib: self.disk_size_gib.unwrap_or(present.disk_size_gib),
        }
    }

    /// Checks the sizes against the instance, and adds an error for every wrong field.
    pub fn check(&self, instance: &Instance, errors: &mut FieldErrors) {
        if instance.resource_type == ResourceType::Vm {
            for (field, asked) in [
                ("n_vcpus", self.n_vcpus),
                ("mem_gib", self.mem_gib),
                ("disk_size_gib", self.disk_size_gib),
            ] {
                if asked.is_some() {
                    errors.add(field, "VMs cannot be resized");
                }
            }
        } else if self
            .disk_size_gib
            .is_some_and(|disk| disk < instance.size.disk_size_gib)
        {
            let present = instance.size.disk_size_gib;
            errors.add(
                "disk_size_gib",
                format!("a disk only grows; it has {present} GiB"),
            );
        }
    }
}
