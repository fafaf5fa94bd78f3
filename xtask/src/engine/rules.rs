//! The node's rules against instances (nftables), and what lets their own traffic through.
//!
//! Bridges of Wharf's networks are called `whf…`, whatever engine makes them, so the rules stand
//! before the first of them exists. Each engine has a table of its own; the same rules twice do no
//! harm.

use super::switch::{self, ANNOUNCING, FORWARDING};
use crate::process::{command, find, output, succeeds};
use crate::say;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// How the tables are called, with an engine's id behind it.
const PREFIX: &str = "wharf_";

/// Rules that are in force until [`NodeRules::remove`].
#[derive(Debug)]
pub struct NodeRules {
    id: String,
}

impl NodeRules {
    /// For an engine that does no packet filtering itself: isolation, and address translation for
    /// what instances send out.
    pub fn for_private_engine(id: &str) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(true, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            rules.accept_in_iptables()
        })
    }

    /// For an engine of ours that manages its own packet filter: isolation only.
    pub(super) fn for_private_podman(id: &str) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(false, FORWARDING.was_off()?)?;
            FORWARDING.turn_on()?;
            ANNOUNCING.turn_on()
        })
    }

    /// For an engine that manages its own packet filter, such as a user's Docker: isolation only.
    pub fn for_engine_of_the_machine(id: &str, is_podman: bool) -> Result<Self> {
        Self::set(id, |rules| {
            rules.load(false, false)?;
            if is_podman {
                ANNOUNCING.turn_on()?;
            }
            Ok(())
        })
    }

    /// All of it, or nothing.
    fn set(id: &str, set: impl FnOnce(&Self) -> Result<()>) -> Result<Self> {
        let _turn = switch::turn()?;
        let rules = Self { id: id.to_owned() };
        let Err(error) = set(&rules) else {
            return Ok(rules);
        };
        if let Err(left) = rules.take_back() {
            say::note(&format!("Not all of the node's rules are gone: {left:#}"));
        }
        Err(error)
    }

    /// Takes the rules back.
    pub fn remove(&self) -> Result<()> {
        let _turn = switch::turn()?;
        self.take_back()
    }

    /// Every step, also after one that fails.
    fn take_back(&self) -> Result<()> {
        let table = self.table();
        let deleted = nft(&format!("table inet {table}\ndelete table inet {table}\n"));
        self.delete_from_iptables();
        let tables = output(command("nft").args(["list", "tables", "inet"]));
        deleted?;
        if tables?.contains(&format!(" {PREFIX}")) {
            // The last one puts them back.
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
        // Bridged packets pass the forward chain too when `bridge-nf-call-iptables` is set. `fib`
        // tells them from routed ones; kernels that lack it get the rule without exception.
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

    /// A drop in any table is final, an accept is not: where the machine's own `FORWARD` policy is
    /// drop (Docker sets it so), instances need an exception there as well.
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

/// It needs forwarding, and finds it on: it would not switch it on again.
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
        .context("nft does not run")?;
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
