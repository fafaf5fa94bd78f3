//! The node's rules (nftables): they isolate instances from the node and from each other.
//!
//! The bridges of Wharf's networks are named `whf…` with every engine, so the rules can be set before a
//! bridge exists. Each engine has its own table; duplicate rules do no harm.

use super::sysctl::{self, ANNOUNCING, FORWARDING};
use crate::process::{command, find, output, succeeds};
use crate::progress;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// The prefix of a table's name; the engine's id follows.
const PREFIX: &str = "wharf_";

/// Rules in force until [`NodeRules::remove`].
#[derive(Debug)]
pub struct NodeRules {
    id: String,
}

impl NodeRules {
    /// Sets the rules for an engine without its own packet filter: isolation and address translation.
    pub fn for_private_engine(id: &str) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(true, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            rules.accept_in_iptables()
        })
    }

    /// Sets the rules for a private engine with its own packet filter: isolation only.
    pub(super) fn for_private_podman(id: &str) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(false, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            ANNOUNCING.turn_on()
        })
    }

    /// Sets the rules for the machine's engine, which has its own packet filter: isolation only.
    pub fn for_engine_of_the_machine(id: &str, is_podman: bool) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(false, false)?;
            if is_podman {
                ANNOUNCING.turn_on()?;
            }
            Ok(())
        })
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

    fn load(&self, translate: bool, forwarding_was_off: bool) -> Result<()> {
        // With `bridge-nf-call-iptables`, bridged packets pass the forward chain too. `fib` recognizes
        // them; kernels without it get the rule without this exception.
        let exact = "fib daddr . iif oif missing ";
        if nft(&ruleset(
            &self.table(),
            exact,
            translate,
            forwarding_was_off,
        ))
        .is_ok()
        {
            return Ok(());
        }
        nft(&ruleset(&self.table(), "", translate, forwarding_was_off))
    }

    /// Accepts instances in iptables too: its `FORWARD` policy may be drop, as Docker sets it, and an accept
    /// in another table does not override that.
    fn accept_in_iptables(&self) -> Result<()> {
        if find("iptables").is_none() {
            return Ok(());
        }
        self.delete_from_iptables();
        for rule in FORWARDED {
            let mut insert = command("iptables");
            insert
                .args(["-w", "5", "-I", "FORWARD"])
                .args(rule)
                .args(self.comment());
            output(&mut insert)?;
        }
        Ok(())
    }

    fn delete_from_iptables(&self) {
        for rule in FORWARDED {
            let delete = || {
                let mut delete = command("iptables");
                delete
                    .args(["-w", "5", "-D", "FORWARD"])
                    .args(rule)
                    .args(self.comment());
                succeeds(&mut delete)
            };
            while delete() {}
        }
    }

    fn comment(&self) -> [String; 6] {
        let words = ["-m", "comment", "--comment", &self.table(), "-j", "ACCEPT"];
        words.map(str::to_owned)
    }
}

/// Whether another dockerd runs. It needs forwarding, and would not enable it again.
fn another_dockerd() -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .any(|name| name.trim() == "dockerd")
}

const FORWARDED: [&[&str]; 2] = [
    &["-i", "whf+"],
    &[
        "-o",
        "whf+",
        "-m",
        "conntrack",
        "--ctstate",
        "RELATED,ESTABLISHED",
    ],
];

fn ruleset(table: &str, exact: &str, translate: bool, forwarding_was_off: bool) -> String {
    let mut text = format!(
        r#"table inet {table}
delete table inet {table}
table inet {table} {{
  chain input {{
    type filter hook input priority filter - 5; policy accept;
    iifname "whf*" ct state established,related accept
    iifname "whf*" drop comment "the node itself"
  }}
  chain forward {{
    type filter hook forward priority filter - 5; policy accept;
    iifname "whf*" ip daddr 169.254.0.0/16 drop comment "link-local: metadata services"
    iifname "whf*" ip6 daddr {{ fe80::/10, fd00:ec2::254 }} drop
    ct state established,related accept
    oifname "whf0*" accept comment "public addresses"
    iifname "whf*" oifname "whf*" {exact}drop comment "another owner's network"
    iifname != "whf*" oifname "whf*" ct state new ct status and dnat != dnat drop comment "only published ports"
"#
    );
    if forwarding_was_off {
        text += "    iifname != \"whf*\" oifname != \"whf*\" drop comment \"the machine was no router\"\n";
    }
    text += "  }\n";
    if translate {
        let _ = writeln!(
            text,
            "  chain postrouting {{\n    type nat hook postrouting priority srcnat; policy accept;\n    \
             iifname \"whf*\" oifname != \"whf*\" masquerade\n  }}"
        );
    }
    text + "}\n"
}

fn nft(ruleset: &str) -> Result<()> {
    let mut child = command("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run nft")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(ruleset.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "nft refuses the node's rules: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
