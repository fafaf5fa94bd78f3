//! The node's rules (nftables): they isolate instances from the node and from each other.
//!
//! The bridges of Wharf's networks are named `whf…` with every engine, so the rules can be set before a
//! bridge exists. Each engine has its own table; duplicate rules do no harm.

mod allowed;
mod ruleset;

pub use allowed::Allowed;
pub use ruleset::Ruleset;

use super::input::nft;
use super::sysctl::{self, ANNOUNCING, FORWARDING};
use crate::process::{command, find, output, succeeds};
use crate::progress;
use anyhow::Result;
use std::fs;

/// The prefix of a table's name; the engine's id follows.
const PREFIX: &str = "wharf_";

/// Rules in force until [`NodeRules::remove`].
#[derive(Debug)]
pub struct NodeRules {
    id: String,
}

impl NodeRules {
    /// Sets the rules for an engine without its own packet filter: isolation and address translation.
    pub fn for_private_engine(id: &str, allowed: &Allowed) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(allowed, true, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            rules.accept_in_iptables()
        })
    }

    /// Sets the rules for a private engine with its own packet filter: isolation only.
    pub(super) fn for_private_podman(id: &str, allowed: &Allowed) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(allowed, false, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            ANNOUNCING.turn_on()
        })
    }

    /// Sets the rules for the machine's engine, which has its own packet filter: isolation only.
    pub fn for_engine_of_the_machine(id: &str, is_podman: bool, allowed: &Allowed) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(allowed, false, false)?;
            if is_podman {
                ANNOUNCING.turn_on()?;
            }
            Ok(())
        })
    }

    /// The rules that a killed run may have left.
    pub(crate) fn of_killed_run(id: &str) -> Self {
        Self { id: id.to_owned() }
    }

    /// Sets all rules, or none.
    fn set(id: &str, set: impl FnOnce(&Self) -> Result<()>) -> Result<Self> {
        let _lock = sysctl::lock()?;
        let rules = Self { id: id.to_owned() };
        let Err(error) = set(&rules) else {
            return Ok(rules);
        };
        if let Err(left) = rules.remove_all() {
            progress::note(&format!(
                "Not all of the node's rules are removed: {left:#}"
            ));
        }
        Err(error)
    }

    /// Removes the rules.
    pub fn remove(&self) -> Result<()> {
        let _lock = sysctl::lock()?;
        self.remove_all()
    }

    /// Runs every step, even after a failure.
    fn remove_all(&self) -> Result<()> {
        let table = self.table();
        let deleted = nft(&format!("table inet {table}\ndelete table inet {table}\n"));
        self.delete_from_iptables();
        remove_empty_tables();
        let tables = output(command("nft").args(["list", "tables", "inet"]));
        deleted?;
        if tables?.contains(&format!(" {PREFIX}")) {
            // The last engine restores the kernel parameters.
            return Ok(());
        }
        let announcing = ANNOUNCING.put_back();
        if !another_dockerd() {
            FORWARDING.put_back()?;
        }
        announcing
    }

    fn table(&self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    fn load(&self, allowed: &Allowed, translate: bool, forwarding_was_off: bool) -> Result<()> {
        let mut rules = Ruleset {
            allowed: allowed.clone(),
            translate,
            forwarding_was_off,
            without_fib: false,
        };
        if nft(&rules.text(&self.table())).is_ok() {
            return Ok(());
        }
        rules.without_fib = true;
        nft(&rules.text(&self.table()))
    }

    /// Accepts instances in iptables too: its `FORWARD` policy may be drop, as Docker sets it, and an accept
    /// in another table does not override that. They get out towards the uplink only.
    fn accept_in_iptables(&self) -> Result<()> {
        if find("iptables").is_none() {
            return Ok(());
        }
        self.delete_from_iptables();
        let answers = "-o whf+ -m conntrack --ctstate RELATED,ESTABLISHED";
        let mut rules = vec!["-i whf+ -o whf+".to_owned(), answers.to_owned()];
        rules.extend(
            uplinks()
                .iter()
                .map(|uplink| format!("-i whf+ -o {uplink}")),
        );
        for rule in rules {
            let mut insert = command("iptables");
            insert
                .args(["-w", "5", "-I", "FORWARD"])
                .args(rule.split(' '))
                .args(["-m", "comment", "--comment", &self.table(), "-j", "ACCEPT"]);
            output(&mut insert)?;
        }
        Ok(())
    }

    /// Deletes by the comment: the uplink may have changed.
    fn delete_from_iptables(&self) {
        let list = output(command("iptables").args(["-w", "5", "-S", "FORWARD"]));
        let list = list.unwrap_or_default();
        let table = self.table();
        let own = list.lines().filter_map(|rule| {
            let words: Vec<_> = rule.split(' ').map(|word| word.trim_matches('"')).collect();
            (words.contains(&table.as_str()) && words.first() == Some(&"-A")).then_some(words)
        });
        for words in own {
            let rest = words.get(1..).unwrap_or_default();
            succeeds(command("iptables").args(["-w", "5", "-D"]).args(rest));
        }
    }
}

/// The tables that iptables makes for its first rule, and leaves without rules.
const IPTABLES: [&str; 2] = ["ip filter", "ip nat"];
/// The chains of those tables that iptables makes by itself.
const BUILT_IN: [&str; 5] = ["INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"];

/// Removes the tables of iptables that have no effect.
fn remove_empty_tables() {
    for name in IPTABLES {
        let list = output(command("nft").args(["list", "table"]).args(name.split(' ')));
        if list.is_ok_and(|text| is_without_effect(&text)) {
            // Fails if a rule was added meanwhile to a chain that other tables refer to.
            let _ = nft(&format!("delete table {name}\n"));
        }
    }
}

/// Whether a table has only the chains of iptables, without rules, and with the policy to accept.
fn is_without_effect(table: &str) -> bool {
    let lines = table.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && *line != "}" && !line.starts_with('#'))
        .all(|line| {
            let is_built_in = BUILT_IN
                .iter()
                .any(|name| line == format!("chain {name} {{"));
            let is_hook = line.starts_with("type ")
                && line.contains(" hook ")
                && line.ends_with("policy accept;");
            let is_table = IPTABLES
                .iter()
                .any(|name| line == format!("table {name} {{"));
            is_built_in || is_hook || is_table
        })
}

/// Whether another dockerd runs. It needs forwarding, and would not enable it again.
fn another_dockerd() -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .any(|name| name.trim() == "dockerd")
}

/// The interfaces of the machine's default routes.
fn uplinks() -> Vec<String> {
    let routes = output(command("ip").args(["-4", "route", "show", "default"])).unwrap_or_default();
    let mut devices: Vec<_> = routes
        .lines()
        .filter_map(|route| route.split(" dev ").nth(1)?.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    devices.sort();
    devices.dedup();
    devices
}

#[cfg(test)]
mod tests {
    use super::is_without_effect;

    #[test]
    fn a_table_is_removed_only_if_it_does_nothing() {
        let table = |line: &str| {
            format!(
                "table ip filter {{\n\tchain FORWARD {{\n\t\ttype filter hook forward priority \
                 filter; policy accept;\n{line}\t}}\n}}\n"
            )
        };
        assert!(is_without_effect(&table("")));
        assert!(!is_without_effect(&table(
            "\t\toifname \"x\" counter accept\n"
        )));
        assert!(!is_without_effect(&table("").replace("accept", "drop")));
        let nat = table("").replace("ip filter", "ip nat");
        let nat = nat.replace("FORWARD", "POSTROUTING");
        let nat = nat.replace("type filter hook forward", "type nat hook postrouting");
        assert!(is_without_effect(&nat), "{nat}");
        assert!(!is_without_effect(&nat.replace("ip nat", "ip wharf")));
        assert!(!is_without_effect(
            &table("").replace("FORWARD", "DOCKER-USER")
        ));
    }
}
