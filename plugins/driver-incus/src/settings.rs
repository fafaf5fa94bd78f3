//! The node's `settings` table for this driver. `requests.toml` has its form and its defaults, and the host
//! puts the settings into requests. The driver checks those that depend on each other.

use crate::publish_range::PublishRange;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::net::Ipv4Addr;
use wharf_guest::{Error, Node};

/// The settings that the driver needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server in its cluster. A single server is a cluster of one.
    pub member: String,
    /// The networks of the instances.
    pub mode: Mode,
}

/// The networks that instances join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// All owners share a bridge of the member.
    Bridge,
    /// Each owner has a network of OVN, which spans the members.
    Ovn(Ovn),
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
    #[serde(default)]
    gateway: String,
    #[serde(default)]
    publish_address: String,
    #[serde(default)]
    dns: String,
    #[serde(default)]
    uplink: String,
    #[serde(default)]
    acl: String,
    #[serde(default)]
    publish_cidr: String,
    #[serde(default = "publish_from")]
    publish_from: u16,
    #[serde(default, rename = "project")]
    _project: IgnoredAny,
    #[serde(default, rename = "pool")]
    _pool: IgnoredAny,
    #[serde(default, rename = "network")]
    _network: IgnoredAny,
    #[serde(default, rename = "port_isolation")]
    _port_isolation: IgnoredAny,
    #[serde(default, rename = "pids_limit")]
    _pids_limit: IgnoredAny,
}

fn publish_from() -> u16 {
    20_000
}

impl Settings {
    /// Parses and checks the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of the setting.
    pub fn read(node: &Node) -> Result<Self, Error> {
        let table: Table = wharf_guest::settings(node)?;
        let mut servers = table.dns.split_whitespace();
        if let Some(wrong) = servers.find(|server| server.parse::<Ipv4Addr>().is_err()) {
            let message = format!("{wrong:?} is no IPv4 address");
            return Err(Error::invalid("settings.dns", message));
        }
        let mode = if table.uplink.is_empty() {
            table.check_bridge()?;
            Mode::Bridge
        } else {
            Mode::Ovn(table.ovn()?)
        };
        Ok(Self {
            member: table.member,
            mode,
        })
    }
}

impl Table {
    fn check_bridge(&self) -> Result<(), Error> {
        for (setting, value) in [("acl", &self.acl), ("publish_cidr", &self.publish_cidr)] {
            if !value.is_empty() {
                let message = "is a setting of OVN mode, which needs an `uplink`";
                return Err(Error::invalid(&format!("settings.{setting}"), message));
            }
        }
        check_address("settings.gateway", &self.gateway, "the bridge")?;
        // Incus forwards no port of all addresses at once.
        check_address(
            "settings.publish_address",
            &self.publish_address,
            "the server",
        )
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

/// Checks an address that bridge mode needs.
fn check_address(setting: &str, text: &str, whose: &str) -> Result<(), Error> {
    let address = text.parse::<Ipv4Addr>();
    if address.is_ok_and(|address| !address.is_unspecified()) {
        return Ok(());
    }
    let message = format!(
        "bridge mode needs one IPv4 address of {whose}, such as \"192.0.2.10\", not {text:?}; OVN mode needs \
         an `uplink`"
    );
    Err(Error::invalid(setting, message))
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
    fn an_uplink_is_ovn_mode() {
        let settings = read(&format!("{{{NEEDED}}}")).unwrap();
        assert!(matches!(settings.mode, Mode::Bridge));
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
