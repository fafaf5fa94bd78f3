//! Rules in iptables, which netavark uses up to 1.10.

use super::Networks;
use crate::engine::run_with_input;
use crate::process::{command, find, output};
use anyhow::Result;
use std::fmt::Write as _;

/// Chains with rules even without containers.
const BY_ITSELF: [&str; 4] = [
    "NETAVARK-HOSTPORT-SETMARK",
    "NETAVARK-HOSTPORT-MASQ",
    "NETAVARK_ISOLATION_3",
    "NETAVARK_INPUT",
];
/// Chains that all networks share.
const SHARED: [&str; 4] = [
    "NETAVARK_FORWARD",
    "NETAVARK-HOSTPORT-DNAT",
    "NETAVARK_ISOLATION_1",
    "NETAVARK_ISOLATION_2",
];

pub(super) fn forget(networks: &Networks) -> Result<()> {
    if find("iptables-save").is_none() {
        return Ok(());
    }
    let saved = output(&mut command("iptables-save"))?;
    let mut restore = command("iptables-restore");
    restore.args(["--noflush", "--wait", "5"]);
    removal(&saved, networks).map_or(Ok(()), |text| run_with_input(&mut restore, &text))
}

/// A table of `iptables-save`: netavark's chains, and all rules.
struct Table<'a> {
    name: &'a str,
    chains: Vec<&'a str>,
    rules: Vec<IptablesRule<'a>>,
}

struct IptablesRule<'a> {
    chain: &'a str,
    target: &'a str,
    /// The rule as `-A` and `-D` take it.
    text: &'a str,
    /// Whether the rule names a bridge or an address of the networks.
    is_theirs: bool,
}

impl<'a> Table<'a> {
    fn parse(section: &'a str, networks: &Networks) -> Option<Self> {
        let rule = |text: &'a str| {
            let words = text.split(' ');
            let target = words.clone().skip_while(|word| *word != "-j").nth(1);
            IptablesRule {
                chain: words.clone().next().unwrap_or_default(),
                target: target.unwrap_or_default(),
                text,
                is_theirs: words.clone().any(|word| networks.have(word)),
            }
        };
        Some(Self {
            name: section.lines().find(|line| line.starts_with('*'))?,
            chains: section
                .lines()
                .filter_map(|line| line.strip_prefix(':')?.split(' ').next())
                .filter(|name| name.starts_with("NETAVARK"))
                .collect(),
            rules: section
                .lines()
                .filter_map(|line| line.strip_prefix("-A "))
                .map(rule)
                .collect(),
        })
    }

    /// Whether a chain belongs to one of the networks alone.
    fn is_their_chain(&self, chain: &str) -> bool {
        let mut rules = self.rules.iter();
        self.chains.contains(&chain)
            && !SHARED.contains(&chain)
            && !BY_ITSELF.contains(&chain)
            && rules.any(|rule| rule.chain == chain && rule.is_theirs)
    }

    fn goes(&self, rule: &IptablesRule) -> bool {
        self.is_their_chain(rule.chain)
            || self.is_their_chain(rule.target)
            || self.chains.contains(&rule.chain) && rule.is_theirs
    }

    /// Whether a container of another Podman has a rule in this table.
    fn is_in_use(&self) -> bool {
        self.rules.iter().any(|rule| {
            let inside = self.chains.contains(&rule.chain) && !BY_ITSELF.contains(&rule.chain);
            inside && !self.goes(rule)
        })
    }

    /// Writes the removal of the networks' rules, or of all of netavark's.
    fn removal(&self, all: bool, text: &mut String) {
        let condemned = |chain: &str| all || self.is_their_chain(chain);
        let chains: Vec<_> = self.chains.iter().filter(|name| condemned(name)).collect();
        let _ = writeln!(text, "{}", self.name);
        for rule in &self.rules {
            let goes = self.goes(rule) || all && self.chains.contains(&rule.target);
            if goes && !chains.contains(&&rule.chain) {
                let _ = writeln!(text, "-D {}", rule.text);
            }
        }
        for chain in &chains {
            let _ = writeln!(text, "-F {chain}");
        }
        for chain in &chains {
            let _ = writeln!(text, "-X {chain}");
        }
        text.push_str("COMMIT\n");
    }
}

/// The input of `iptables-restore --noflush`, if there is anything to remove.
fn removal(saved: &str, networks: &Networks) -> Option<String> {
    let tables: Vec<_> = saved
        .split("COMMIT\n")
        .filter_map(|section| Table::parse(section, networks))
        .filter(|table| !table.chains.is_empty())
        .collect();
    let all = !tables.iter().any(Table::is_in_use);
    let any = all
        || tables
            .iter()
            .any(|t| t.rules.iter().any(|rule| t.goes(rule)));
    if tables.is_empty() || !any {
        return None;
    }
    let mut text = String::new();
    for table in &tables {
        table.removal(all, &mut text);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::networks::tests::one;
    use super::removal;

    const EMPTY: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n:NETAVARK-HOSTPORT-MASQ - [0:0]\n\
        -A POSTROUTING -j NETAVARK-HOSTPORT-MASQ\n\
        -A NETAVARK-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE\nCOMMIT\n";
    const EMPTIED: &str = "*nat\n-D POSTROUTING -j NETAVARK-HOSTPORT-MASQ\n\
        -F NETAVARK-HOSTPORT-MASQ\n-X NETAVARK-HOSTPORT-MASQ\nCOMMIT\n";
    const THEIRS: &str = "*filter\n:FORWARD ACCEPT [0:0]\n:NETAVARK_FORWARD - [0:0]\n\
        :NETAVARK-DN-1 - [0:0]\n\
        -A FORWARD -m comment --comment \"netavark firewall plugin rules\" -j NETAVARK_FORWARD\n\
        -A NETAVARK_FORWARD -d 10.7.3.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
        -A NETAVARK_FORWARD -p tcp -m tcp --dport 15222 -j NETAVARK-DN-1\n\
        -A NETAVARK-DN-1 -p tcp -m tcp --dport 15222 -j DNAT --to-destination 10.7.3.9:22\n";
    const OTHERS: &str = "-A NETAVARK_FORWARD -s 10.88.0.0/16 -j ACCEPT\n";

    #[test]
    fn empty_chains_go_with_the_jumps_to_them() {
        assert_eq!(removal(EMPTY, &one()).as_deref(), Some(EMPTIED));
        let nothing =
            "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.7.3.0/24 -j ACCEPT\nCOMMIT\n";
        assert_eq!(removal(nothing, &one()), None);
    }

    #[test]
    fn rules_of_killed_containers_go_with_the_chains() {
        let expected = "*filter\n\
            -D FORWARD -m comment --comment \"netavark firewall plugin rules\" -j NETAVARK_FORWARD\n\
            -F NETAVARK_FORWARD\n-F NETAVARK-DN-1\n-X NETAVARK_FORWARD\n-X NETAVARK-DN-1\nCOMMIT\n";
        let saved = format!("{THEIRS}COMMIT\n{EMPTY}");
        let expected = format!("{expected}{EMPTIED}");
        assert_eq!(removal(&saved, &one()), Some(expected));
    }

    #[test]
    fn another_podmans_rules_stay() {
        let expected = "*filter\n\
            -D NETAVARK_FORWARD -d 10.7.3.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
            -D NETAVARK_FORWARD -p tcp -m tcp --dport 15222 -j NETAVARK-DN-1\n\
            -F NETAVARK-DN-1\n-X NETAVARK-DN-1\nCOMMIT\n";
        let saved = format!("{THEIRS}{OTHERS}COMMIT\n");
        assert_eq!(removal(&saved, &one()).as_deref(), Some(expected));
        let saved = format!("*filter\n:NETAVARK_FORWARD - [0:0]\n{OTHERS}COMMIT\n{EMPTY}");
        assert_eq!(removal(&saved, &one()), None);
    }
}
