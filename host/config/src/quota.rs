//! `[quota]`: the most that the instances, volumes and snapshots of one user hold together.

use super::SshPorts;
use serde::Deserialize;
use wharf_domain::quota::QuotaLimits;

/// The limits of every user without limits of their own. Each is a number or `"unlimited"`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaConfig {
    /// Instances. Default `"unlimited"`.
    pub n_instances: QuotaLimit,
    /// vCPUs of instances that are not stopped. Default `"unlimited"`.
    pub n_vcpus: QuotaLimit,
    /// RAM in GiB of instances that are not stopped. Default `"unlimited"`.
    pub mem_gib: QuotaLimit,
    /// Disk in GiB. Default `"unlimited"`.
    pub disk_size_gib: QuotaLimit,
    /// GPUs of instances that are not stopped. Default `"unlimited"`.
    pub n_gpus: QuotaLimit,
    /// SSH ports, ports of web pages, and open ports of VMs. Default nine tenths of the number of
    /// `ssh_ports`, which leaves a tenth of them to other users.
    pub n_ports: Option<QuotaLimit>,
    /// Volumes. Default `"unlimited"`.
    pub n_volumes: QuotaLimit,
    /// Sizes of volumes in GiB. Default `"unlimited"`.
    pub volume_gib: QuotaLimit,
    /// Snapshots. Default `"unlimited"`.
    pub n_snapshots: QuotaLimit,
    /// Sizes of snapshots in GiB. Default `"unlimited"`.
    pub snapshot_gib: QuotaLimit,
}

/// A limit; `None` means no limit.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct QuotaLimit(Option<u64>);

impl TryFrom<toml::Value> for QuotaLimit {
    type Error = &'static str;

    fn try_from(value: toml::Value) -> Result<Self, Self::Error> {
        let limit = match &value {
            toml::Value::String(word) if word == "unlimited" => return Ok(Self(None)),
            toml::Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        limit
            .map(|limit| Self(Some(limit)))
            .ok_or("must be a number from 0 or \"unlimited\"")
    }
}

impl Default for QuotaConfig {
    fn default() -> Self {
        let unlimited = QuotaLimit(None);
        Self {
            n_instances: unlimited,
            n_vcpus: unlimited,
            mem_gib: unlimited,
            disk_size_gib: unlimited,
            n_gpus: unlimited,
            n_ports: None,
            n_volumes: unlimited,
            volume_gib: unlimited,
            n_snapshots: unlimited,
            snapshot_gib: unlimited,
        }
    }
}

impl QuotaConfig {
    /// Sets the defaults that are shares of other settings.
    pub(super) fn share(&mut self, ssh_ports: SshPorts) {
        let ports = u64::from(ssh_ports.to.saturating_sub(ssh_ports.from)) + 1;
        // Rounded up, so that a single port can be used.
        let share = QuotaLimit(Some(ports - ports / 10));
        self.n_ports.get_or_insert(share);
    }

    /// Returns the limits.
    pub fn limits(&self) -> QuotaLimits {
        QuotaLimits {
            n_instances: self.n_instances.0,
            n_vcpus: self.n_vcpus.0,
            mem_gib: self.mem_gib.0,
            disk_size_gib: self.disk_size_gib.0,
            n_gpus: self.n_gpus.0,
            n_ports: self.n_ports.and_then(|limit| limit.0),
            n_volumes: self.n_volumes.0,
            volume_gib: self.volume_gib.0,
            n_snapshots: self.n_snapshots.0,
            snapshot_gib: self.snapshot_gib.0,
        }
    }
}
