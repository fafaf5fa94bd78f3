//! `[[node]]`: a machine that runs instances.

use crate::host;
use ipnet::Ipv4Net;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use wharf_domain::capacity::CpuTier;

/// The configuration of one node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Unique name, required. Only operators see it.
    pub name: String,
    /// Driver plugin, required: `docker`, `simulated`, or the name of a plugin in `plugins_dir`.
    pub driver: String,
    /// Address of the engine, required: `unix:///path/to/socket`, `https://HOST:PORT`, or `simulated:`
    /// for the built-in engine.
    pub endpoint: String,
    /// Certificates for an `https://` endpoint, which requires them.
    pub tls: Option<EngineTls>,
    /// Resources that instances may claim, required.
    pub capacity: NodeCapacity,
    /// vCPUs that instances may claim for each one of `capacity`, from 1 to 100. One instance has at most
    /// the vCPUs of `capacity`. RAM and disk are never overcommitted. Default 1.
    #[serde(default = "cpu_overcommit")]
    pub cpu_overcommit: f64,
    /// GPUs of the node. Default: none.
    #[serde(default)]
    pub gpus: Vec<GpuConfig>,
    /// CPU tiers that the node offers. Default: both.
    #[serde(default = "both_tiers")]
    pub cpu_tiers: Vec<CpuTier>,
    /// Login host of the node's instances. Default: the global `ssh_host`.
    #[serde(default, deserialize_with = "host::read_optional")]
    pub ssh_host: Option<String>,
    /// Host at which Wharf probes published ports to see whether an instance is ready. Default: the
    /// login host for SSH and the web host for pages.
    #[serde(default, deserialize_with = "host::read_optional")]
    pub probe_host: Option<String>,
    /// IPv4 address of the node's private ports, which only Wharf must reach: SSH of flavors that offer
    /// none to their users. Default: `127.0.0.1` for an engine on this machine, except Incus; else that of
    /// public ports.
    pub private_address: Option<Ipv4Addr>,
    /// Network of the instances' private addresses. Nodes with one cluster, driver, `lan_cidr` and
    /// `lan_subnet_prefix` share its addresses. Default `10.80.0.0/16`.
    #[serde(default = "lan_cidr")]
    pub lan_cidr: Ipv4Net,
    /// Prefix length of each owner's subnet of `lan_cidr`. Default 24.
    #[serde(default = "lan_subnet_prefix")]
    pub lan_subnet_prefix: u8,
    /// Networks of public addresses for VMs; the first address of each belongs to the router. Default:
    /// none, and the node then takes no VMs.
    #[serde(default)]
    pub public_ipv4: Vec<Ipv4Net>,
    /// Whether the node takes no new instances. Its present ones go on, and can be deleted. Default false.
    #[serde(default)]
    pub retired: bool,
    /// Name of the cluster to which the node's engine belongs. Instances move between nodes of one cluster
    /// with one driver, and an owner has one subnet on nodes whose `lan_cidr` is the same. Default: none.
    pub cluster: Option<String>,
    /// Settings of the driver, passed on unchanged. Default: none.
    #[serde(default)]
    pub settings: toml::Table,
}

/// `[node.tls]`: certificates for an engine on another machine. All files are PEM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineTls {
    /// Path of Wharf's certificate chain, required.
    pub cert: PathBuf,
    /// Path of its private key, required. Only its owner may read the file.
    pub key: PathBuf,
    /// Path of the certificates of the issuers that may vouch for the engine. Either this or
    /// `server_cert` is required.
    pub ca: Option<PathBuf>,
    /// The name or address in the engine's certificate, with `ca`. Default: the host of `endpoint`.
    pub server_name: Option<String>,
    /// Path of the engine's certificate. No other one is accepted then; its name and dates do not matter.
    pub server_cert: Option<PathBuf>,
}

/// The total resources that instances on a node may claim. All fields are required.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeCapacity {
    /// Number of vCPUs.
    pub n_vcpus: u32,
    /// RAM in GiB.
    pub mem_gib: u32,
    /// Disk in GiB.
    pub disk_size_gib: u32,
}

/// GPUs of one model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuConfig {
    /// Model name that users give in `gpu_model`, required.
    pub model: String,
    /// Number of GPUs. Default: the length of `devices`.
    pub count: Option<u32>,
    /// The driver's device names, such as `nvidia.com/gpu=0`. Default: `MODEL#0`, `MODEL#1`, …
    #[serde(default)]
    pub devices: Vec<String>,
}

impl GpuConfig {
    /// Returns one device name for each GPU.
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

impl NodeConfig {
    /// The vCPUs that instances may claim together.
    pub fn claimable_vcpus(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a product within the bounds is positive, and a larger one saturates"
        )]
        let claimable = (f64::from(self.capacity.n_vcpus) * self.cpu_overcommit) as u32;
        claimable
    }

    /// The address of private ports; `None` if they have that of public ones.
    pub fn private_address(&self) -> Option<Ipv4Addr> {
        // Incus has rules of the firewall, which connections to the loopback do not pass.
        let has_loopback = self.is_here() && self.driver != "incus";
        let is_default = has_loopback && !self.has_address_of_each_port();
        let default = is_default.then_some(Ipv4Addr::LOCALHOST);
        self.private_address.or(default)
    }

    /// Whether each port has an address of its own, by its number.
    pub fn has_address_of_each_port(&self) -> bool {
        let range = self.settings.get("publish_cidr");
        let range = range.and_then(|range| range.as_str());
        range.is_some_and(|range| !range.is_empty())
    }

    /// Whether the engine is on this machine.
    fn is_here(&self) -> bool {
        let Some(address) = self.endpoint.strip_prefix("https://") else {
            return true;
        };
        let host = host::plain(address.rsplit_once(':').map_or(address, |(host, _)| host));
        let is_loopback = |address: IpAddr| address.is_loopback();
        host == "localhost" || host.parse().is_ok_and(is_loopback)
    }

    /// Whether two nodes share the private addresses of one range.
    pub fn shares_lan(&self, other: &Self) -> bool {
        self.is_beside(other)
            && self.lan_cidr.trunc() == other.lan_cidr.trunc()
            && self.lan_subnet_prefix == other.lan_subnet_prefix
    }

    /// Whether two nodes have one cluster and one driver.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.cluster.is_some() && self.cluster == other.cluster && self.driver == other.driver
    }
}

fn cpu_overcommit() -> f64 {
    1.0
}

fn both_tiers() -> Vec<CpuTier> {
    vec![CpuTier::GeneralPurpose, CpuTier::HighPerformance]
}

fn lan_cidr() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 80, 0, 0), 16)
}

fn lan_subnet_prefix() -> u8 {
    24
}

#[cfg(test)]
mod tests {
    use super::NodeConfig;

    fn private(endpoint: &str, more: &str) -> Option<String> {
        with("docker", endpoint, more)
    }

    fn with(driver: &str, endpoint: &str, more: &str) -> Option<String> {
        let text = format!(
            "name = \"a\"\ndriver = \"{driver}\"\nendpoint = \"{endpoint}\"\n{more}\n\
             [capacity]\nn_vcpus = 1\nmem_gib = 1\ndisk_size_gib = 1\n"
        );
        let node: NodeConfig = toml::from_str(&text).unwrap();
        node.private_address().map(|address| address.to_string())
    }

    #[test]
    fn private_ports_are_on_loopback_for_an_engine_on_this_machine() {
        for here in [
            "unix:///run/x.sock",
            "simulated:",
            "https://127.0.0.2:8443",
            "https://localhost:8443",
            "https://[::1]:8443",
        ] {
            assert_eq!(private(here, "").unwrap(), "127.0.0.1", "{here}");
        }
        for elsewhere in ["https://192.0.2.1:8443", "https://localhost.example:8443"] {
            assert_eq!(private(elsewhere, ""), None, "{elsewhere}");
            let given = private(elsewhere, "private_address = \"10.0.0.5\"");
            assert_eq!(given.unwrap(), "10.0.0.5");
        }
        assert_eq!(with("incus", "unix:///run/x.sock", ""), None);
        let each = "settings = { publish_cidr = \"198.18.64.0/18\" }";
        assert_eq!(private("unix:///run/x.sock", each), None);
    }
}
