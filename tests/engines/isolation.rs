//! Attempts to reach the node from a root shell in an instance.

use crate::inside::{Listener, connects, gateway, reached};
use crate::lab::{Lab, Neighbours, inside, text};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::TcpStream;

pub fn root_shell(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let (mine, theirs) = (&all.mine, &all.theirs);
    let gateway = gateway(mine)?;
    let listener = Listener::everywhere()?;
    let addresses = listener.addresses(&[&gateway])?;
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let of_node = reached(mine, &addresses, listener.port())?;
    ensure!(of_node.is_empty(), "the node is reachable at {of_node:?}");
    // The REST interface itself, which listens on the node's loopback.
    let api_port = all.server.base_url().rsplit(':').next();
    let of_wharf = reached(mine, &addresses, api_port.unwrap_or_default().parse()?)?;
    ensure!(of_wharf.is_empty(), "Wharf is reachable at {of_wharf:?}");

    // Another owner's instance: its address, and its published port on the node.
    let lan = text(&theirs["lan_ipv4"]);
    TcpStream::connect((lan, 22)).context("the other instance is not there")?;
    ensure!(
        !connects(mine, lan, 22)?,
        "another owner's {lan} is reachable"
    );
    // A counter-check: the instance does reach something.
    ensure!(connects(mine, text(&mine["lan_ipv4"]), 22)?);

    // No file system of the instance contains the engine's socket.
    let sockets = "sudo find / -xdev -name '*.sock' 2>/dev/null || true";
    for sockets in [sockets, "cat /proc/net/unix"] {
        let sockets = inside(mine, sockets)?;
        ensure!(
            !sockets.contains("engine") && !sockets.contains("docker"),
            "{sockets}"
        );
    }
    let data = all.server.data_dir();
    let above = format!("sudo chroot /proc/1/root/../.. test -d {}", data.display());
    confined(mine, &["sudo mount -t tmpfs none /mnt", &above])
}

/// Checks that devices and kernel settings of the node are out of reach, and that these attempts fail.
pub fn confined(mine: &Value, more: &[&str]) -> Result<()> {
    let usual = [
        "sudo sh -c 'echo 1 > /proc/sys/kernel/panic'",
        "sudo sh -c 'test -b /dev/vda || mknod /dev/vda b 254 0; head -c 1 /dev/vda'",
    ];
    for attempt in usual.iter().chain(more) {
        ensure!(inside(mine, attempt).is_err(), "allowed: {attempt}");
    }
    Ok(())
}

pub fn same_owner(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let (one, other) = (&all.mine, &all.other);
    ensure!(one["lan_ipv4"] != other["lan_ipv4"]);
    for (from, to) in [(one, other), (other, one)] {
        let lan = text(&to["lan_ipv4"]);
        ensure!(connects(from, lan, 22)?, "{} -> {lan}", from["name"]);
    }
    Ok(())
}
