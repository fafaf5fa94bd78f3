//! The host of the console, which ports of instances may share.

use std::net::IpAddr;
use wharf_config::Config;
use wharf_operations::check::{ConfigFinding, Severity};

/// Warns of a console on a host with ports of instances. Browsers send its cookies to all of them.
pub(super) fn find(config: &Config) -> Option<ConfigFinding> {
    let url = config.base_url();
    let console = place(url.host());
    let nodes = config.node.iter().filter_map(|node| {
        let host = node.ssh_host.as_deref()?;
        Some((format!("node.{}.ssh_host", node.name), host))
    });
    let all = [
        ("web.host".to_owned(), config.web.host.as_str()),
        ("ssh_host".to_owned(), config.ssh_host.as_str()),
    ];
    let mut shared = all.into_iter().chain(nodes);
    let (setting, host) = shared.find(|(_, host)| place(host) == console)?;
    Some(ConfigFinding {
        severity: Severity::Warning,
        setting: "base_url".to_owned(),
        problem: format!(
            "the console at {url} and ports of instances are on one host, by `{setting} = \"{host}\"`; \
             browsers send the cookies of the console to servers in instances"
        ),
        remedy: "give the console a host name and an address of its own".to_owned(),
    })
    .filter(|_| config.session.enabled)
}

/// A host in one spelling. All names of this machine for itself are one place.
fn place(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
    let host = host.to_ascii_lowercase();
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    match host.parse::<IpAddr>() {
        _ if is_loopback => "localhost".to_owned(),
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => host,
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn hosts_have_one_spelling() {
        for loopback in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.1.2.3",
            "[::1]",
        ] {
            assert_eq!(place(loopback), "localhost", "{loopback}");
        }
        assert_eq!(place("[2001:DB8::0:1]"), place("2001:db8::1"));
        assert_eq!(place("Wharf.Example.org."), "wharf.example.org");
        assert_ne!(place("wharf.example.org"), place("pages.example.org"));
    }
}
