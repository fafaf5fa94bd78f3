//! Rules in nftables, which netavark uses from 1.11 on.

use super::Networks;
use crate::process::{command, output, succeeds};
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;

const TABLE: [&str; 3] = ["table", "inet", "netavark"];
/// The prefix of the chains of one network.
const OWN_CHAIN: &str = "nv_";

pub(super) fn forget(networks: &Networks) -> Result<()> {
    let Ok(listed) = output(command("nft").arg("--json").arg("list").args(TABLE)) else {
        return Ok(());
    };
    for words in removal(&serde_json::from_str(&listed)?, networks) {
        succeeds(command("nft").args(words));
    }
    Ok(())
}

/// The commands for `nft`.
fn removal(listed: &Value, networks: &Networks) -> Vec<Vec<String>> {
    let all = || {
        listed
            .get("nftables")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let rules: Vec<_> = all()
        .filter_map(|item| NftablesRule::parse(item.get("rule")?, networks))
        .collect();
    let chains: BTreeSet<_> = all()
        .filter_map(|item| item.pointer("/chain/name")?.as_str())
        .filter(|name| name.starts_with(OWN_CHAIN))
        .collect();
    let theirs: BTreeSet<_> = rules
        .iter()
        .filter(|rule| rule.is_theirs && chains.contains(rule.chain))
        .map(|rule| rule.chain)
        .collect();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    if theirs == chains {
        return vec![words(&["delete", "table", "inet", "netavark"])];
    }
    let mut commands = Vec::new();
    for rule in &rules {
        let goes = rule.is_theirs || rule.targets.iter().any(|target| theirs.contains(target));
        if goes && !theirs.contains(rule.chain) {
            let handle = rule.handle.to_string();
            let rule = [
                "delete", "rule", "inet", "netavark", rule.chain, "handle", &handle,
            ];
            commands.push(words(&rule));
        }
    }
    for verb in ["flush", "delete"] {
        let chain = |name| words(&[verb, "chain", "inet", "netavark", name]);
        commands.extend(theirs.iter().map(|&name| chain(name)));
    }
    commands
}

struct NftablesRule<'a> {
    chain: &'a str,
    handle: u64,
    targets: Vec<&'a str>,
    /// Whether the rule names a bridge or an address of the networks.
    is_theirs: bool,
}

impl<'a> NftablesRule<'a> {
    fn parse(rule: &'a Value, networks: &Networks) -> Option<Self> {
        let mut words = Vec::new();
        strings(rule.get("expr")?, &mut words);
        Some(Self {
            chain: rule.get("chain")?.as_str()?,
            handle: rule.get("handle")?.as_u64()?,
            is_theirs: words.iter().any(|word| networks.have(word)),
            targets: words
                .into_iter()
                .filter(|word| word.starts_with(OWN_CHAIN))
                .collect(),
        })
    }
}

/// Collects all strings in a value.
fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::networks::tests::one;
    use super::removal;
    use serde_json::{Value, json};

    fn jump(handle: u64, target: &str) -> Value {
        json!({ "rule": { "chain": "NETAVARK-HOSTPORT-DNAT", "handle": handle,
            "expr": [{ "match": { "right": 15222 } }, { "jump": { "target": target } }] } })
    }

    fn chain(name: &str, address: &str) -> [Value; 2] {
        [
            json!({ "chain": { "name": name } }),
            json!({ "rule": { "chain": name, "handle": 7,
                "expr": [{ "dnat": { "family": "ip", "addr": address, "port": 22 } }] } }),
        ]
    }

    #[test]
    fn the_table_goes_unless_another_podman_is_in_it() {
        let [a, b] = chain("nv_1_dnat", "10.7.3.9");
        let [c, d] = chain("nv_2_dnat", "10.88.0.2");
        let (e, f) = (jump(4, "nv_1_dnat"), jump(5, "nv_2_dnat"));
        let whole = json!({ "nftables": [a, b, e] });
        assert_eq!(
            removal(&whole, &one()),
            [["delete", "table", "inet", "netavark"]]
        );
        let commands = removal(&json!({ "nftables": [a, b, c, d, e, f] }), &one());
        let commands: Vec<_> = commands.iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            commands,
            [
                "delete rule inet netavark NETAVARK-HOSTPORT-DNAT handle 4",
                "flush chain inet netavark nv_1_dnat",
                "delete chain inet netavark nv_1_dnat",
            ]
        );
        assert!(removal(&json!({ "nftables": [c, d, f] }), &one()).is_empty());
    }
}
