//! Hosts. An IPv6 address may be written with brackets, as in URLs, or without, as OpenSSH has it.

use serde::{Deserialize, Deserializer};
use std::net::Ipv6Addr;

/// A host with IPv6 addresses in their plain form, without brackets.
pub fn plain(host: &str) -> String {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(host).parse::<Ipv6Addr>();
    address.map_or_else(|_| host.to_owned(), |address| address.to_string())
}

/// A host as it stands in a URL.
pub fn in_url(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    }
}

pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|host| plain(&host))
}

pub(crate) fn read_optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let host = Option::<String>::deserialize(deserializer)?;
    Ok(host.map(|host| plain(&host)))
}

#[cfg(test)]
mod tests {
    use super::{in_url, plain};

    #[test]
    fn an_ipv6_address_has_one_form_in_each_place() {
        for (given, bare, url) in [
            ("[2001:DB8::1]", "2001:db8::1", "[2001:db8::1]"),
            ("2001:db8:0::1", "2001:db8::1", "[2001:db8::1]"),
            ("::1", "::1", "[::1]"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("a.example.org", "a.example.org", "a.example.org"),
            ("[a]", "[a]", "[a]"),
        ] {
            assert_eq!(plain(given), bare);
            assert_eq!(in_url(&plain(given)), url);
        }
    }
}
