//! The text of the rules. The page on networking has it too; a test compares their effect.

use super::allowed::Allowed;
use std::fmt::Write as _;

/// The variable parts of the rules.
#[derive(Debug, Clone, Default)]
pub struct Ruleset {
    /// Private destinations that instances may reach.
    pub allowed: Allowed,
    /// Whether the rules translate the addresses of instances.
    pub translate: bool,
    /// Whether the machine was no router before.
    pub forwarding_was_off: bool,
    /// Whether the kernel lacks `fib`. Then bridged packets between instances may be dropped, and forged
    /// sources pass.
    pub without_fib: bool,
}

impl Ruleset {
    /// The rules as a table of this name, in place of an earlier one.
    pub fn text(&self, table: &str) -> String {
        let mut text =
            format!("table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n");
        if !self.without_fib {
            text += FORGED;
        }
        text += INPUT;
        text += METADATA;
        for (family, ranges) in self.allowed.ranges() {
            let _ = writeln!(
                text,
                "    iifname \"whf*\" oifname != \"whf*\" {family} daddr {{ {ranges} }} accept comment \"allowed\""
            );
        }
        for (family, servers) in self.allowed.name_servers() {
            let _ = writeln!(
                text,
                "    iifname \"whf*\" oifname != \"whf*\" {family} daddr {{ {servers} }} meta l4proto {{ tcp, udp }} th dport 53 accept"
            );
        }
        text += PRIVATE;
        // With `bridge-nf-call-iptables`, bridged packets pass this chain too. `fib` recognizes them.
        let exact = if self.without_fib {
            ""
        } else {
            "fib daddr . iif oif missing "
        };
        let _ = write!(
            text,
            r#"    iifname "whf*" oifname "whf*" {exact}drop comment "another owner's network"
    iifname != "whf*" oifname "whf*" ct state new ct status and dnat != dnat drop comment "only published ports"
"#
        );
        if self.forwarding_was_off {
            text += "    iifname != \"whf*\" oifname != \"whf*\" drop comment \"the machine was no router\"\n";
        }
        text += "  }\n";
        if self.translate {
            text += TRANSLATION;
        }
        text + "}\n"
    }
}

/// A source must be an address of the bridge's network. A virtual machine may answer from its public
/// address on its private network, or the reverse.
const FORGED: &str = r#"  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "whf*" fib saddr oifname != "whf*" drop comment "forged source"
    iifname "whfn*" fib saddr . iif oif missing fib saddr oifname != "whf0*" drop comment "forged source"
  }
"#;

const INPUT: &str = r#"  chain input {
    type filter hook input priority filter - 5; policy accept;
    iifname "whf*" ct state established,related accept
    iifname "whf*" drop comment "the node itself"
  }
"#;

const METADATA: &str = r#"  chain forward {
    type filter hook forward priority filter - 5; policy accept;
    iifname "whf*" ip daddr { 169.254.0.0/16, 168.63.129.16, 100.100.100.200 } drop comment "metadata services"
    iifname "whf*" ip6 daddr { fe80::/10, fd00:ec2::254 } drop comment "metadata services"
    ct state established,related accept
    oifname "whf0*" accept comment "public addresses"
"#;

const PRIVATE: &str = r#"    iifname "whf*" oifname != "whf*" ip daddr { 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16 } drop comment "private networks"
    iifname "whf*" oifname != "whf*" ip6 daddr fc00::/7 drop comment "private networks"
"#;

const TRANSLATION: &str = r#"  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    iifname "whf*" oifname != "whf*" masquerade
  }
"#;
