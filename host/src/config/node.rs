//! `[[node]]`: a machine that runs instances.

use crate::domain::capacity::CpuTier;
use ipnet::Ipv4Net;
use serde::Deserialize;

/// One node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Unique; shown to operators only.
    pub name: String,
    /// Which driver plugin: `docker`, `simulated`, or the name of one in `plugins_dir`.
    pub driver: String,
    /// The engine: `unix:///path/to/socket`, or `simulated:` for the built-in engine.
    pub endpoint: String,
    /// What Wharf may hand out of it.
    pub capacity: Capacity,
    /// Its GPUs. Default none.
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    /// Tiers it offers. Default both.
    #[serde(default = "both_tiers")]
    pub cpu_tiers: Vec<CpuTier>,
    /// Login host of its instances. Default the global one.
    pub ssh_host: Option<String>,
    /// Where Wharf itself reaches published ports, to see whether an instance is ready.
    /// Default: the login host (SSH) and the web host (pages).
    pub probe_host: Option<String>,
    /// Private addresses of its instances. Default `10.80.0.0/16`.
    #[serde(default = "lan_cidr")]
    pub lan_cidr: Ipv4Net,
    /// Prefix length of one owner's part of `lan_cidr`. Default 24.
    #[serde(default = "lan_subnet_prefix")]
    pub lan_subnet_prefix: u8,
    /// Public addresses for VMs, as networks; the first address of each is the router's. Default
    /// none: the node then takes no VMs.
    #[serde(default)]
    pub public_ipv4: Vec<Ipv4Net>,
    /// Handed to the driver as it is.
    #[serde(default)]
    pub settings: toml::Table,
}

/// Totals that may be claimed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// vCPUs.
    pub n_vcpus: u32,
    /// RAM, GiB.
    pub mem_gib: u32,
    /// Disk, GiB.
    pub disk_size_gib: u32,
}

/// GPUs of one model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// As users ask for it in `gpu_model`.
    pub model: String,
    /// How many. Default: as many as `devices`.
    pub count: Option<u32>,
    /// The driver's names for them, such as `nvidia.com/gpu=0`. Default `MODEL#0`, `MODEL#1`, …
    #[serde(default)]
    pub devices: Vec<String>,
}

impl Gpu {
    /// One device name for each GPU.
    pub fn device_names(&self) -> Vec<String> {
        if self.devices.is_empty() {
            (0..self.count.unwrap_or(0))
                .map(|n| format!("{}#{n}", self.model))
                .collect()
        } else {
            self.devices.clone()
        }
    }
}

fn both_tiers() -> Vec<CpuTier> {
    vec![CpuTier::GeneralPurpose, CpuTier::HighPerformance]
}

fn lan_cidr() -> Ipv4Net {
    Ipv4Net::new_assert(std::net::Ipv4Addr::new(10, 80, 0, 0), 16)
}

fn lan_subnet_prefix() -> u8 {
    24
}
