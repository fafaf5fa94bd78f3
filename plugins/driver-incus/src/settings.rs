//! The node's `settings` table for this driver. `policy.toml` has the defaults too, because the host
//! compares requests with them.

use crate::publish_range::PublishRange;
use serde::Deserialize;
use std::net::Ipv4Addr;
use wharf_guest::{Error, Node};

/// The settings, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server in its cluster. A single server is a cluster of one.
    pub member: String,
    /// The project of all instances and images.
    pub project: String,
    /// The storage pool of the instances' disks.
    pub pool: String,
    /// Name servers of the instances, with spaces between them; empty for that of the bridge.
    pub dns: String,
    /// Maximum number of processes and threads in an instance.
    pub pids_limit: u32,
    /// The networks of the instances.
    pub mode: Mode,
}

/// The networks that instances join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// All owners share a bridge of the member.
    Bridge(Bridge),
    /// Each owner has a network of OVN, which spans the members.
    Ovn(Ovn),
}

/// The settings of bridge mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// The managed bridge that the instances join.
    pub network: String,
    /// The address of that bridge, which routes the instances' traffic.
    pub gateway: Ipv4Addr,
    /// The server's address for published ports. Incus forwards no port of all addresses at once.
    pub publish_address: Ipv4Addr,
    /// Whether instances are kept from each other, `true` or `false`. All owners share the bridge.
    pub port_isolation: String,
}

/// The settings of OVN mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ovn {
    /// The network through which the owners' networks reach others.
    pub uplink: String,
    /// The rules of the owners' networks.
    pub acl: String,
    /// The addresses of published ports.
    pub publish: PublishRange,
}

/// The node's table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    member: String,
    #[serde(default = "project")]
    project: String,
    #[serde(default = "pool")]
    pool: String,
    #[serde(default = "network")]
    network: String,
    #[serde(default)]
    gateway: String,
    #[serde(default)]
    publish_address: String,
    #[serde(default)]
    dns: String,
    #[serde(default = "port_isolation")]
    port_isolation: String,
    #[serde(default = "pids_limit")]
    pids_limit: u32,
    #[serde(default)]
    uplink: String,
    #[serde(default)]
    acl: String,
    #[serde(default)]
    publish_cidr: String,
    #[serde(default = "publish_from")]
    publish_from: u16,
}

fn project() -> String {
    "wharf".into()
}

fn pool() -> String {
    "default".into()
}

fn network() -> String {
    "wharf0".into()
}

fn port_isolation() -> String {
    "true".into()
}

fn publish_from() -> u16 {
    20_000
}

fn pids_limit() -> u32 {
    4096
}

impl Settings {
    /// Parses and checks the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of the setting.
    pub fn read(node: &Node) -> Result<Self, Error> {
        let table: Table = wharf_guest::settings(node)?;
        if table.pids_limit == 0 {
            return Err(Error::invalid("settings.pids_limit", "must be at least 1"));
        }
        if table.member.is_empty() {
            let message = "must be the server's name in its cluster";
            return Err(Error::invalid("settings.member", message));
        }
        let mut servers = table.dns.split_whitespace();
        if let Some(wrong) = servers.find(|server| server.parse::<Ipv4Addr>().is_err()) {
            let message = format!("{wrong:?} is no IPv4 address");
            return Err(Error::invalid("settings.dns", message));
        }
        let mode = match table.uplink.is_empty() {
            true => Mode::Bridge(table.bridge()?),
            false => Mode::Ovn(table.ovn()?),
        };
        Ok(Self {
            member: table.member,
            project: table.project,
            pool: table.pool,
            dns: table.dns,
            pids_limit: table.pids_limit,
            mode,
        })
    }
}

impl Table {
    fn bridge(&self) -> Result<Bridge, Error> {
        for (setting, value) in [("acl", &self.acl), ("publish_cidr", &self.publish_cidr)] {
            if !value.is_empty() {
                let message = "is a setting of OVN mode, which needs an `uplink`";
                return Err(Error::invalid(&format!("settings.{setting}"), message));
            }
        }
        let bridge = Bridge {
            network: self.network.clone(),
            gateway: address("settings.gateway", &self.gateway, "the bridge")?,
            publish_address: address(
                "settings.publish_address",
                &self.publish_address,
                "the server",
            )?,
            port_isolation: self.port_isolation.clone(),
        };
        if !matches!(bridge.port_isolation.as_str(), "true" | "false") {
            let message = "must be \"true\" or \"false\"";
            return Err(Error::invalid("settings.port_isolation", message));
        }
        Ok(bridge)
    }

    fn ovn(&self) -> Result<Ovn, Error> {
        if self.acl.is_empty() {
            let message = "OVN mode needs the name of the network ACL for the owners' networks";
            return Err(Error::invalid("settings.acl", message));
        }
        if self.dns.trim().is_empty() {
            let message = "OVN mode needs the addresses of public name servers";
            return Err(Error::invalid("settings.dns", message));
        }
        let publish = PublishRange::parse(&self.publish_cidr, self.publish_from);
        Ok(Ovn {
            uplink: self.uplink.clone(),
            acl: self.acl.clone(),
            publish: publish.ok_or_else(|| {
                let message = format!(
                    "OVN mode needs the addresses of published ports, such as \
                     \"198.18.64.0/18\", not {:?}",
                    self.publish_cidr
                );
                Error::invalid("settings.publish_cidr", message)
            })?,
        })
    }
}

/// Parses an address that bridge mode needs.
fn address(setting: &str, text: &str, whose: &str) -> Result<Ipv4Addr, Error> {
    let address = text.parse::<Ipv4Addr>().ok();
    address.filter(|a| !a.is_unspecified()).ok_or_else(|| {
        let message = format!(
            "bridge mode needs one IPv4 address of {whose}, such as \"192.0.2.10\", not {text:?}; \
             OVN mode needs an `uplink`"
        );
        Error::invalid(setting, message)
    })
}

#[cfg(test)]
mod tests {
    use super::{Mode, Settings};
    use wharf_guest::{Error, Node};

    const NEEDED: &str = r#""member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1""#;

    const OVN: &str = r#""member":"m1","uplink":"up0","acl":"wharf","dns":"9.9.9.9","publish_cidr":"198.18.64.0/18","publish_from":20000"#;

    fn read(settings: &str) -> Result<Settings, Error> {
        Settings::read(&Node {
            name: "n".into(),
            installation: "i".into(),
            settings: settings.into(),
            hint: String::new(),
        })
    }

    #[test]
    fn the_rest_has_defaults() {
        let settings = read(&format!("{{{NEEDED}}}")).unwrap();
        assert_eq!(settings.project, "wharf");
        assert_eq!((settings.pids_limit, settings.dns.as_str()), (4096, ""));
    }

    #[test]
    fn an_uplink_is_ovn_mode() {
        let settings = read(&format!("{{{NEEDED}}}")).unwrap();
        assert!(matches!(settings.mode, Mode::Bridge(bridge) if bridge.network == "wharf0"));
        let settings = read(&format!("{{{OVN}}}")).unwrap();
        assert!(matches!(settings.mode, Mode::Ovn(ovn) if ovn.uplink == "up0"));
        // Bridge mode's own settings may stay.
        let both = read(&format!("{{{OVN},\"gateway\":\"10.79.0.1\"}}")).unwrap();
        assert!(matches!(both.mode, Mode::Ovn(_)));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let cases = [
            ("{}".to_owned(), "member"),
            (format!(r#"{{{NEEDED},"pid_limit":1}}"#), "pid_limit"),
            (format!(r#"{{{NEEDED},"pids_limit":0}}"#), "pids_limit"),
            (
                format!(r#"{{{NEEDED},"port_isolation":"on"}}"#),
                "port_isolation",
            ),
            (format!(r#"{{{NEEDED},"dns":"10.0.0.1 x"}}"#), "dns"),
            (NEEDED.replace("192.0.2.1", "0.0.0.0"), "publish_address"),
            (NEEDED.replace("10.79.0.1", "here"), "gateway"),
            (
                r#""member":"m1","publish_address":"192.0.2.1""#.into(),
                "gateway",
            ),
            (
                r#""member":"m1","gateway":"10.79.0.1""#.into(),
                "publish_address",
            ),
            (format!(r#"{{{NEEDED},"acl":"wharf"}}"#), "acl"),
            (OVN.replace(r#""acl":"wharf","#, ""), "acl"),
            (OVN.replace("9.9.9.9", ""), "dns"),
            (OVN.replace("/18", ""), "publish_cidr"),
            (OVN.replace("20000", "\"x\""), "settings"),
        ];
        for (text, named) in cases {
            let text = if text.starts_with('{') {
                text
            } else {
                format!("{{{text}}}")
            };
            let error = format!("{:?}", read(&text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
