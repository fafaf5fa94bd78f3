//! The body of a creation in Podman's own interface.

use super::{Creation, lxcfs};
use serde_json::{Map, Value, json};

/// [`super::LOG_MAX_SIZE`] in bytes, as Podman expects it.
const LOG_MAX_BYTES: u64 = 10 << 20;

impl Creation {
    /// Builds the body, with devices by their CDI names. Up to 4.9, Podman's Docker interface
    /// silently drops those.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "an object gets the key")]
    pub fn libpod(&self, name: &str, devices: &[String]) -> Value {
        let host = &self.host_config;
        let mut resources = host.size.libpod();
        resources["pids"] = json!({ "limit": host.pids_limit });
        let mut body = json!({
            "name": name,
            "image": self.image,
            "hostname": self.hostname,
            "labels": self.labels,
            "netns": { "nsmode": "bridge" },
            "networks": self.networks(),
            "portmappings": self.port_mappings(),
            "resource_limits": resources,
            "cap_drop": host.cap_drop,
            "restart_policy": host.restart_policy.name,
            "log_configuration": { "driver": host.log_config.r#type, "size": LOG_MAX_BYTES },
            "devices": devices.iter().map(|device| json!({ "path": device })).collect::<Value>(),
        });
        if !self.cmd.is_empty() {
            body["command"] = json!(self.cmd);
        }
        if !self.env.is_empty() {
            let env = self.env.iter().filter_map(|entry| entry.split_once('='));
            body["env"] = env
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect::<Map<_, _>>()
                .into();
        }
        if let Some(bytes) = host.shm_size {
            body["shm_size"] = json!(bytes);
        }
        if !host.sysctls.is_empty() {
            body["sysctl"] = json!(host.sysctls);
        }
        if !host.mounts.is_empty() {
            body["mounts"] = host.mounts.iter().map(lxcfs::Mount::libpod).collect();
        }
        if !host.storage_opt.is_empty() {
            body["storage_opts"] = json!(host.storage_opt);
        }
        if !host.dns.is_empty() {
            body["dns_server"] = json!(host.dns);
        }
        if !host.ulimits.is_empty() {
            let limits = host.ulimits.iter();
            body["r_limits"] = limits
                .map(|limit| json!({ "type": limit.name, "soft": limit.soft, "hard": limit.hard }))
                .collect();
        }
        if let Some(mode) = &host.userns_mode {
            let (mode, value) = mode.split_once(':').unwrap_or((mode, ""));
            body["userns"] = json!({ "nsmode": mode, "value": value });
        }
        body
    }

    fn networks(&self) -> Map<String, Value> {
        let endpoints = self.networking_config.endpoints_config.iter();
        endpoints
            .map(|(network, endpoint)| {
                let address = &endpoint.ipam_config.ipv4_address;
                let mut options = json!({ "static_ips": [address] });
                if let (Some(mac), Some(options)) = (&endpoint.mac_address, options.as_object_mut())
                {
                    options.insert("static_mac".to_owned(), json!(mac));
                }
                (network.clone(), options)
            })
            .collect()
    }

    fn port_mappings(&self) -> Value {
        let bindings = self.host_config.port_bindings.iter();
        let mapping = |inside: &str, binding: &super::Binding| {
            let port = |text: &str| text.parse::<u16>().ok();
            Some(json!({
                "container_port": port(inside.strip_suffix("/tcp")?)?,
                "host_port": port(&binding.host_port)?,
                "host_ip": binding.host_ip,
                "protocol": "tcp",
            }))
        };
        bindings
            .flat_map(|(inside, all)| all.iter().filter_map(move |one| mapping(inside, one)))
            .collect()
    }
}
