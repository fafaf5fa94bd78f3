//! The addresses of published ports, where each port has one: the address of `settings.publish_cidr`
//! whose number is the port less `settings.publish_from`. Such a range is routed and no link has it, so
//! its first and its last address count too.

use super::document::{Document, SettingType};
use ipnet::Ipv4Net;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The setting with the range, which is empty if ports have no addresses.
const RANGE: &str = "publish_cidr";
/// The setting with the port of the range's first address.
const FIRST: &str = "publish_from";
/// The placeholder of the address.
pub const ADDRESS: &str = "published.address";
/// The settings that the placeholder uses.
pub const SETTINGS: [&str; 2] = [RANGE, FIRST];

/// Whether a policy has the settings of the addresses.
pub fn has_addresses(document: &Document) -> bool {
    let is = |name: &str, kind| {
        let setting = document.settings.get(name);
        setting.is_some_and(|setting| setting.kind() == kind)
    };
    is(RANGE, SettingType::String) && is(FIRST, SettingType::Integer)
}

/// Checks the range of a node.
pub fn check(settings: &BTreeMap<String, Value>) -> Result<(), String> {
    range(settings).map(drop)
}

/// The address of a port. An error names the setting that gives it none.
pub fn address(settings: &BTreeMap<String, Value>, port: u16) -> Result<Ipv4Addr, String> {
    let range =
        range(settings)?.ok_or("settings.publish_cidr is empty, so no port has an address")?;
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
