//! The resources of a node, and the claims that instances hold on them.

use super::ids::{NodeId, UserId};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// An amount of vCPUs, RAM and disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Size {
    /// Number of vCPUs.
    pub n_vcpus: u32,
    /// RAM in GiB.
    pub mem_gib: u32,
    /// Disk in GiB.
    pub disk_size_gib: u32,
}

impl Size {
    /// Returns the maximum of each field.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            n_vcpus: self.n_vcpus.max(other.n_vcpus),
            mem_gib: self.mem_gib.max(other.mem_gib),
            disk_size_gib: self.disk_size_gib.max(other.disk_size_gib),
        }
    }
}

/// A class of CPU. A node offers one or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuTier {
    GeneralPurpose,
    HighPerformance,
}

impl CpuTier {
    pub const ALL: [Self; 2] = [Self::GeneralPurpose, Self::HighPerformance];

    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GeneralPurpose => "general-purpose",
            Self::HighPerformance => "high-performance",
        }
    }
}

/// The resources that an instance holds, from its placement until the node no longer has it.
///
/// Free resources are always computed from the claims; no counter exists beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub node: NodeId,
    /// Owner of the instance, who determines the LAN subnet.
    pub owner: UserId,
    /// Whether vCPUs, RAM and GPUs count. The disk, ports and addresses always count.
    pub compute: bool,
    /// Claimed size; during a resize the maximum of old and new.
    pub size: Size,
    /// Claimed GPUs; they count only while `compute` is true.
    pub gpus: Vec<GpuDevice>,
    /// Port on the SSH login host.
    pub ssh_port: u16,
    /// Port of the web page on the web host.
    pub web_port: Option<u16>,
    /// Index of the owner's LAN subnet on the node, from 0.
    pub lan_subnet: u32,
    /// Address inside the LAN subnet.
    pub lan_ipv4: Ipv4Addr,
    /// Public address; VMs only.
    pub public_ipv4: Option<Ipv4Addr>,
}

/// One GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuDevice {
    pub model: String,
    /// The driver's name for the GPU, such as `nvidia.com/gpu=0`.
    pub device: String,
}
