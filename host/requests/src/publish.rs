//! The addresses of public ports. All have `settings.publish_address`. If `settings.publish_cidr` has a
//! range, each port has the address of it whose number is the port less `settings.publish_from`. Such a
//! range is routed and no link has it, so its first and its last address count too.

use super::body_node::BodyNode;
use super::template::Template;
use ipnet::Ipv4Net;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The setting with the range, which is empty if ports have no addresses.
const RANGE: &str = "publish_cidr";
/// The setting with the port of the range's first address.
const FIRST: &str = "publish_from";
/// The setting with the address of all ports.
pub const COMMON: &str = "publish_address";
/// The settings that give each port an address.
pub const OF_EACH: [&str; 2] = [RANGE, FIRST];

/// Whether a setting is read for the addresses of ports.
pub fn is_read(setting: &str) -> bool {
    setting == COMMON || OF_EACH.contains(&setting)
}

/// Whether a setting has the address of public ports.
pub fn is_public(setting: &str) -> bool {
    [COMMON, RANGE].contains(&setting)
}

/// Checks that each list of ports in a body has their addresses: an engine may choose others.
pub fn check_ports(node: &BodyNode) -> Result<(), String> {
    match node {
        BodyNode::Constant(_) | BodyNode::Template(_) => Ok(()),
        BodyNode::List(items) => items.iter().try_for_each(check_ports),
        BodyNode::Cases(cases) => {
            let mut values = cases.iter().filter_map(|case| case.is.as_ref());
            values.try_for_each(check_ports)
        }
        BodyNode::Object(object) => {
            let mut values = object.members.iter().map(|member| &member.value);
            values.try_for_each(check_ports)
        }
        BodyNode::Each(each) => {
            let mut names = each.item.names();
            names.extend(each.key.iter().flat_map(Template::names));
            check_port(&names, "published")?;
            check_ports(&each.item)
        }
    }
}

/// Checks that names with the number of a published port have its address too.
pub fn check_port(names: &BTreeSet<String>, port: &str) -> Result<(), String> {
    let has = |part: &str| names.contains(&format!("{port}.{part}"));
    if !has("node_port") || has("address") {
        return Ok(());
    }
    Err(format!(
        "{{{port}.node_port}} needs {{{port}.address}} beside it, or a private port could be public"
    ))
}

/// Checks the range of a node.
pub fn check(settings: &BTreeMap<String, Value>) -> Result<(), String> {
    range(settings).map(drop)
}

/// The address of a port. An error names the setting that gives it none.
pub fn address(settings: &BTreeMap<String, Value>, port: u16) -> Result<String, String> {
    let Some(range) = range(settings)? else {
        let common = settings.get(COMMON).and_then(Value::as_str);
        let common = common.filter(|common| !common.is_empty());
        let setting = if settings.contains_key(COMMON) {
            COMMON
        } else {
            RANGE
        };
        let missing = || format!("settings.{setting} is empty, so no port has an address");
        return common.map(str::to_owned).ok_or_else(missing);
    };
    let first = settings.get(FIRST).and_then(Value::as_u64);
    let first = first.ok_or("settings.publish_from is missing")?;
    let number = u64::from(port)
        .checked_sub(first)
        .ok_or_else(|| format!("the port {port} is less than settings.publish_from, {first}"))?;
    let address = u64::from(u32::from(range.network())).saturating_add(number);
    u32::try_from(address)
        .map(Ipv4Addr::from)
        .ok()
        .filter(|address| range.contains(address))
        .map(|address| address.to_string())
        .ok_or_else(|| {
            format!(
                "settings.publish_cidr, {range}, has no address for the port {port}, as its first one \
                 is of port {first}"
            )
        })
}

/// The range; none if the setting is empty.
fn range(settings: &BTreeMap<String, Value>) -> Result<Option<Ipv4Net>, String> {
    let text = settings.get(RANGE).and_then(Value::as_str);
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    // An engine could read another spelling as another range.
    let range = text.parse::<Ipv4Net>().ok();
    let range = range.filter(|range| range.trunc().to_string() == text);
    range.map(Some).ok_or_else(|| {
        format!(
            "{RANGE}: {text:?} is not an IPv4 range from its first address, such as 198.18.64.0/18"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(range: &str) -> BTreeMap<String, Value> {
        let pair = [(RANGE, json!(range)), (FIRST, json!(20_000))];
        pair.map(|(name, value)| (name.to_owned(), value)).into()
    }

    #[test]
    fn each_port_of_the_range_has_an_address() {
        let settings = settings("198.18.64.0/30");
        let of = |port| address(&settings, port);
        assert_eq!(of(20_000).unwrap(), "198.18.64.0");
        assert_eq!(of(20_003).unwrap(), "198.18.64.3");
        assert!(
            of(20_004)
                .unwrap_err()
                .contains("has no address for the port 20004")
        );
        assert!(
            of(19_999)
                .unwrap_err()
                .contains("less than settings.publish_from")
        );
    }

    #[test]
    fn a_range_begins_with_its_first_address_or_is_empty() {
        assert!(check(&settings("198.18.64.0/18")).is_ok());
        assert!(check(&settings("")).is_ok());
        assert!(
            address(&settings(""), 20_000)
                .unwrap_err()
                .contains("is empty")
        );
        for range in [
            "198.18.64.1/18",
            "198.18.064.0/18",
            "198.18.64.0",
            "fd00::/64",
        ] {
            assert!(check(&settings(range)).is_err(), "{range}");
        }
    }
}
