//! The node's `settings` table for this driver. `policy.toml` has the defaults too, because the host
//! compares requests with them.

use serde::Deserialize;
use std::net::Ipv4Addr;
use wharf_guest::{Error, Node};

/// The settings, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The name of this server in its cluster. A single server is a cluster of one.
    pub member: String,
    /// The project of all instances and images.
    #[serde(default = "project")]
    pub project: String,
    /// The storage pool of the instances' disks.
    #[serde(default = "pool")]
    pub pool: String,
    /// The managed bridge that the instances join.
    #[serde(default = "network")]
    pub network: String,
    /// The address of that bridge, which routes the instances' traffic.
    pub gateway: Ipv4Addr,
    /// The server's address for published ports. Incus forwards no port of all addresses at once.
    pub publish_address: Ipv4Addr,
    /// Name servers of the instances, with spaces between them; empty for that of the bridge.
    #[serde(default)]
    pub dns: String,
    /// Whether instances are kept from each other, `true` or `false`. All owners share the bridge.
    #[serde(default = "port_isolation")]
    pub port_isolation: String,
    /// Maximum number of processes and threads in an instance.
    #[serde(default = "pids_limit")]
    pub pids_limit: u32,
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

fn pids_limit() -> u32 {
    4096
}

impl Settings {
    /// Parses and checks the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of the setting.
    pub fn read(node: &Node) -> Result<Self, Error> {
        let settings: Self = wharf_guest::settings(node)?;
        if settings.pids_limit == 0 {
            return Err(Error::invalid("settings.pids_limit", "must be at least 1"));
        }
        if settings.member.is_empty() {
            let message = "must be the server's name in its cluster";
            return Err(Error::invalid("settings.member", message));
        }
        if settings.publish_address.is_unspecified() {
            let message = "must be one address of the server, such as \"192.0.2.10\"";
            return Err(Error::invalid("settings.publish_address", message));
        }
        if !matches!(settings.port_isolation.as_str(), "true" | "false") {
            let message = "must be \"true\" or \"false\"";
            return Err(Error::invalid("settings.port_isolation", message));
        }
        let mut servers = settings.dns.split_whitespace();
        if let Some(wrong) = servers.find(|server| server.parse::<Ipv4Addr>().is_err()) {
            let message = format!("{wrong:?} is no IPv4 address");
            return Err(Error::invalid("settings.dns", message));
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;
    use wharf_guest::{Error, Node};

    const NEEDED: &str = r#""member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1""#;

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
        ];
        for (text, named) in cases {
            let text = if text.starts_with('{') {
                text
            } else {
                format!("{{{text}}}")
            };
            let error = format!("{:?}", read(&text).unwrap_err());
            assert!(error.contains(named) || error.contains("IPv4"), "{error}");
        }
    }
}
