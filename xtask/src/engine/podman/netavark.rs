//! What Podman's network stack leaves in the packet filter when the last container is gone: chains
//! without a rule of any container. It makes them again when it needs them.

use crate::process::{command, find, output, succeeds};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

/// Removes them, unless another Podman has containers in them.
pub(in super::super) fn forget() -> Result<()> {
    // Up to 1.10 it speaks iptables, later nftables.
    if find("iptables-save").is_some() {
        let saved = output(&mut command("iptables-save"))?;
        if let Some(removal) = removal(&saved) {
            restore(&removal)?;
        }
    }
    let table = ["table", "inet", "netavark"];
    let listed = output(command("nft").arg("list").args(table)).unwrap_or_default();
    if !listed.is_empty() && !listed.contains("chain nv_") {
        succeeds(command("nft").arg("delete").args(table));
    }
    Ok(())
}

/// What `iptables-restore --noflush` is to be told; nothing if there is nothing, or a container.
fn removal(saved: &str) -> Option<String> {
    let mut text = String::new();
    let mut found = false;
    for section in saved.split("COMMIT\n") {
        let chains: Vec<_> = section
            .lines()
            .filter_map(|line| line.strip_prefix(':')?.split(' ').next())
            .filter(|name| name.starts_with("NETAVARK"))
            .collect();
        let Some(table) = section.lines().find(|line| line.starts_with('*')) else {
            continue;
        };
        let _ = writeln!(text, "{table}");
        for rule in section.lines().filter_map(|line| line.strip_prefix("-A ")) {
            let chain = rule.split(' ').next().unwrap_or_default();
            let inside = chains.contains(&chain);
            if inside && !BY_ITSELF.contains(&chain) {
                return None;
            }
            if !inside && rule.contains(" NETAVARK") {
                let _ = writeln!(text, "-D {rule}");
            }
        }
        for chain in &chains {
            found = true;
            let _ = writeln!(text, "-F {chain}");
        }
        for chain in &chains {
            let _ = writeln!(text, "-X {chain}");
        }
        text += "COMMIT\n";
    }
    found.then_some(text)
}

/// Chains that are not empty even without a container.
const BY_ITSELF: [&str; 4] = [
    "NETAVARK-HOSTPORT-SETMARK",
    "NETAVARK-HOSTPORT-MASQ",
    "NETAVARK_ISOLATION_3",
    "NETAVARK_INPUT",
];

fn restore(text: &str) -> Result<()> {
    let mut child = command("iptables-restore")
        .args(["--noflush", "--wait", "5"])
        .stdin(Stdio::piped())
        .spawn()
        .context("iptables-restore does not run")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "iptables-restore: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::removal;

    const EMPTY: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n:NETAVARK-HOSTPORT-MASQ - [0:0]\n\
        -A POSTROUTING -j NETAVARK-HOSTPORT-MASQ\n\
        -A NETAVARK-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE\nCOMMIT\n";

    #[test]
    fn empty_chains_go_with_the_jumps_to_them() {
        let expected = "*nat\n-D POSTROUTING -j NETAVARK-HOSTPORT-MASQ\n\
            -F NETAVARK-HOSTPORT-MASQ\n-X NETAVARK-HOSTPORT-MASQ\nCOMMIT\n";
        assert_eq!(removal(EMPTY).as_deref(), Some(expected));
        assert_eq!(removal("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"), None);
    }

    #[test]
    fn chains_with_a_container_stay() {
        let used = "*filter\n:NETAVARK_FORWARD - [0:0]\n\
            -A NETAVARK_FORWARD -s 10.88.0.0/16 -j ACCEPT\nCOMMIT\n";
        assert_eq!(removal(&format!("{EMPTY}{used}")), None);
    }
}
