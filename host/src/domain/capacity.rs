//! Quantities of a node and what an instance holds of them.

use super::ids::{NodeId, UserId};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// What an instance is made of. RAM and disk in GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Size {
    /// vCPUs.
    pub n_vcpus: u32,
    /// RAM, GiB.
    pub mem_gib: u32,
    /// Disk, GiB.
    pub disk_size_gib: u32,
}

impl Size {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            n_vcpus: self.n_vcpus.max(other.n_vcpus),
            mem_gib: self.mem_gib.max(other.mem_gib),
            disk_size_gib: self.disk_size_gib.max(other.disk_size_gib),
        }
    }
}

/// Class of CPU. A node offers one or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuTier {
    /// `general-purpose`.
    GeneralPurpose,
    /// `high-performance`.
    HighPerformance,
}

impl CpuTier {
    /// As the wire spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GeneralPurpose => "general-purpose",
            Self::HighPerformance => "high-performance",
        }
    }
}

/// What one instance holds of its node, from placement until the node was seen without it.
///
/// Everything that may run out is derived from these rows; there is no counter anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The node.
    pub node: NodeId,
    /// Whose instance holds it; decides the LAN subnet.
    pub owner: UserId,
    /// vCPU, RAM and GPUs count only while true; the disk and all addresses always do.
    pub compute: bool,
    /// The claimed size; during a resize the larger of old and new.
    pub size: Size,
    /// Counted only while `compute`.
    pub gpus: Vec<GpuDevice>,
    /// Port on the SSH login host.
    pub ssh_port: u16,
    /// Port of the web page, on the web host.
    pub web_port: Option<u16>,
    /// Which of the node's LAN subnets the owner has, counted from 0.
    pub lan_subnet: u32,
    /// Address inside it.
    pub lan_ipv4: Ipv4Addr,
    /// Public address, for VMs.
    pub public_ipv4: Option<Ipv4Addr>,
}

/// One GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuDevice {
    /// Model name.
    pub model: String,
    /// What the driver calls it, such as `nvidia.com/gpu=0`.
    pub device: String,
}
