//! Checks that the types of the configuration cannot express.

use super::host::in_url;
use super::{
    Config, ConfigError, LimitsConfig, NodeConfig, OidcConfig, flavor, mirrors, pages, registry,
};
use std::collections::BTreeSet;

/// Checks values against each other and against the limits of this machine.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    ports("ssh_ports", config.ssh_ports.from, config.ssh_ports.to)?;
    ports("web", config.web.from, config.web.to)?;
    let disjoint = config.ssh_ports.to < config.web.from || config.web.to < config.ssh_ports.from;
    if !disjoint {
        return wrong("web", "its ports must not overlap those of `ssh_ports`");
    }
    if !is_account(&config.login_user) {
        return wrong(
            "login_user",
            "must be a Unix account name: lowercase letters, digits, `-` and `_`, at most 32, not root",
        );
    }
    if config.provisioning_deadline_s == 0 {
        return wrong("provisioning_deadline_s", "must be at least 1");
    }
    if config.clock.max_gap_days == 0 {
        return wrong("clock.max_gap_days", "must be at least 1");
    }
    session(config)?;
    if let Some((key, rule)) = config.oidc.as_ref().and_then(OidcConfig::broken_rule) {
        return wrong(&format!("oidc.{key}"), rule);
    }
    limits(&config.limits)?;
    flavor::check(config)?;
    mirrors::check(config)?;
    registry::check(config)?;
    pages::check(config)?;
    for (file, pin) in &config.plugins.hashes {
        let hex = pin.strip_prefix("sha256:").unwrap_or_default();
        let is_hash = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let setting = format!("plugins.{file}");
        if file.ends_with(".policy.toml") {
            return wrong(
                &setting,
                "is of an earlier version of Wharf; the driver needs a request file, which \
                 docs/plugins.md describes",
            );
        }
        let is_plugin = file.ends_with(".wasm") || file.ends_with(".requests.toml");
        if !is_hash || !is_plugin {
            return wrong(
                &setting,
                "must be a file and its hash, such as \"driver-x.wasm\" = \"sha256:…\" with the 64 \
                 digits of sha256sum",
            );
        }
    }
    if config.node.is_empty() {
        return wrong("node", "at least one [[node]] is required");
    }
    let mut names = BTreeSet::new();
    for node in &config.node {
        if !names.insert(&node.name) {
            return wrong("node.name", &format!("`{}` is used twice", node.name));
        }
        check_node(config, node)?;
    }
    Ok(())
}

/// Rejects sessions that end at once, and cookies that would reach the pages of instances.
fn session(config: &Config) -> Result<(), ConfigError> {
    for (key, value) in [
        ("idle_hours", config.session.idle_hours),
        ("absolute_days", config.session.absolute_days),
    ] {
        if value == 0 {
            return wrong(&format!("session.{key}"), "must be at least 1");
        }
    }
    let url = config.base_url();
    if config.session.enabled && url.host().eq_ignore_ascii_case(&in_url(&config.web.host)) {
        return wrong(
            "base_url",
            &format!(
                "the console at {url} and the pages of instances have the host name `{}`; browsers \
                 send a cookie to all ports of a host, so a page could take over its user's \
                 session; give `base_url` or `web.host` another host name, or set \
                 `session.enabled = false`",
                config.web.host
            ),
        );
    }
    Ok(())
}

/// Rejects limits of 0 that would block all work.
fn limits(limits: &LimitsConfig) -> Result<(), ConfigError> {
    for (key, zero) in [
        ("max_connections", limits.max_connections == 0),
        ("connections_per_peer", limits.connections_per_peer == 0),
        ("event_streams_per_user", limits.event_streams_per_user == 0),
        ("write_timeout_ms", limits.write_timeout_ms == 0),
        ("bodies_mib", limits.bodies_mib == 0),
        ("unsent_mib", limits.unsent_mib == 0),
        ("idle_timeout_ms", limits.idle_timeout_ms == 0),
        ("stats_every_ms", limits.stats_every_ms == 0),
        ("stats_timeout_ms", limits.stats_timeout_ms == 0),
        ("calls_per_node", limits.calls_per_node == 0),
        ("call_timeout_ms", limits.call_timeout_ms == 0),
        ("call_cpu_ms", limits.call_cpu_ms == 0),
        ("guest_memory_mib", limits.guest_memory_mib == 0),
    ] {
        if zero {
            return wrong(&format!("limits.{key}"), "must be at least 1");
        }
    }
    Ok(())
}

fn check_node(config: &Config, node: &NodeConfig) -> Result<(), ConfigError> {
    let setting = |key: &str| format!("node.{}.{key}", node.name);
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if node.name.is_empty() || node.name.len() > 63 || !node.name.chars().all(allowed) {
        return wrong(
            "node.name",
            "must be 1 to 63 letters, digits, hyphens, underscores or dots",
        );
    }
    if node.cpu_tiers.is_empty() {
        return wrong(&setting("cpu_tiers"), "must name at least one tier");
    }
    if !(1.0..=100.0).contains(&node.cpu_overcommit) {
        return wrong(&setting("cpu_overcommit"), "must be from 1 to 100");
    }
    let prefix = node.lan_subnet_prefix;
    if prefix < node.lan_cidr.prefix_len() || !(8..=29).contains(&prefix) {
        return wrong(
            &setting("lan_subnet_prefix"),
            "must be from the prefix length of lan_cidr to 29",
        );
    }
    if let Some(address) = node.private_address {
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            return wrong(
                &setting("private_address"),
                "must be one address of the node, such as \"127.0.0.1\"",
            );
        }
        if node.has_address_of_each_port() {
            return wrong(
                &setting("private_address"),
                "has no use with `settings.publish_cidr`, which gives each port an address of its own",
            );
        }
    }
    for gpu in &node.gpus {
        let devices = u32::try_from(gpu.devices.len()).unwrap_or(u32::MAX);
        let counts_match = gpu.devices.is_empty() || gpu.count.is_none_or(|n| n == devices);
        if !counts_match || gpu.device_names().is_empty() {
            return wrong(
                &setting("gpus"),
                &format!(
                    "{}: `devices` must list one device for each of `count`",
                    gpu.model
                ),
            );
        }
        if !config.rates.gpu.contains_key(&gpu.model) {
            return wrong(
                "rates.gpu",
                &format!("has no rate for \"{}\" of node {}", gpu.model, node.name),
            );
        }
    }
    let mut devices = BTreeSet::new();
    for device in node.gpus.iter().flat_map(super::GpuConfig::device_names) {
        if !devices.insert(device.clone()) {
            return wrong(
                &setting("gpus"),
                &format!("device {device} is listed twice"),
            );
        }
    }
    Ok(())
}

fn ports(setting: &str, from: u16, to: u16) -> Result<(), ConfigError> {
    if from < 1024 || to < from {
        return wrong(setting, "`from` must be at least 1024 and at most `to`");
    }
    // The kernel may give an ephemeral port to an outgoing connection, and an instance could not
    // publish it then.
    if let Some((first, last)) = ephemeral_range()
        && from <= last
        && first <= to
    {
        return wrong(
            setting,
            &format!(
                "{from}-{to} overlaps the kernel's ephemeral ports {first}-{last} \
                 (net.ipv4.ip_local_port_range)"
            ),
        );
    }
    Ok(())
}

fn ephemeral_range() -> Option<(u16, u16)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn is_account(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && name.len() <= 32
        && name != "root"
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

pub fn wrong<T>(setting: &str, message: &str) -> Result<T, ConfigError> {
    Err(ConfigError::Value {
        setting: setting.to_owned(),
        message: message.to_owned(),
    })
}
