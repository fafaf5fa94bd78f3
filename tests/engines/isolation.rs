//! Attempts to reach the node from a root shell in an instance.

use crate::context::Context;
use crate::inside::{Listener, connects, password, reached};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::TcpStream;
use wharf_tests::{Api, Login};

fn running(api: &Api) -> Result<Value> {
    let created = api.small_container()?;
    api.wait_for(created["uuid"].as_str().unwrap_or_default(), "running")
}

pub fn root_shell(context: &Context) -> Result<()> {
    let server = context.server()?;
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let (mine, theirs) = (running(&ann)?, running(&bob)?);
    let inside = Login::Password(password(&mine));

    let gateway = inside.output(
        &mine,
        "python3 -c \"print('.'.join(str(b) for b in bytes.fromhex([l.split()[2] for l in open('/proc/net/route') if l.split()[1]=='00000000'][0])[::-1]))\"",
    )?;
    let listener = Listener::everywhere()?;
    let addresses = listener.addresses(&[&gateway])?;
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let of_node = reached(&mine, &addresses, listener.port())?;
    ensure!(of_node.is_empty(), "the node is reachable at {of_node:?}");
    // The REST interface itself, which listens on the node's loopback.
    let api_port: u16 = server
        .base_url()
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .parse()?;
    let of_wharf = reached(&mine, &addresses, api_port)?;
    ensure!(of_wharf.is_empty(), "Wharf is reachable at {of_wharf:?}");

    // Another owner's instance: its address, and its published port on the node.
    let lan = theirs["lan_ipv4"].as_str().unwrap_or_default();
    TcpStream::connect((lan, 22)).context("the other instance is not there")?;
    ensure!(
        !connects(&mine, lan, 22)?,
        "another owner's {lan} is reachable"
    );
    // A counter-check: the instance does reach something.
    ensure!(connects(
        &mine,
        mine["lan_ipv4"].as_str().unwrap_or_default(),
        22
    )?);

    // No file system of the instance contains the engine's socket.
    let sockets = inside.output(
        &mine,
        "sudo find / -xdev -name '*.sock' 2>/dev/null || true",
    )?;
    ensure!(
        !sockets.contains("engine") && !sockets.contains("docker"),
        "{sockets}"
    );
    let unix = inside.output(&mine, "cat /proc/net/unix")?;
    ensure!(
        !unix.contains("engine.sock") && !unix.contains("docker"),
        "{unix}"
    );
    // Devices and kernel settings of the node are out of reach too.
    let data = server.data_dir();
    let above = format!("sudo chroot /proc/1/root/../.. test -d {}", data.display());
    for attempt in [
        "sudo mount -t tmpfs none /mnt",
        "sudo sh -c 'echo 1 > /proc/sys/kernel/panic'",
        "sudo sh -c 'test -b /dev/vda || mknod /dev/vda b 254 0; head -c 1 /dev/vda'",
        &above,
    ] {
        ensure!(
            !inside.run(&mine, attempt)?.status.success(),
            "allowed: {attempt}"
        );
    }
    server.finish()
}

pub fn same_owner(context: &Context) -> Result<()> {
    let server = context.server()?;
    let ann = server.user("ann@example.com")?;
    let (one, other) = (running(&ann)?, running(&ann)?);
    ensure!(one["lan_ipv4"] != other["lan_ipv4"]);
    ensure!(connects(
        &one,
        other["lan_ipv4"].as_str().unwrap_or_default(),
        22
    )?);
    ensure!(connects(
        &other,
        one["lan_ipv4"].as_str().unwrap_or_default(),
        22
    )?);
    server.finish()
}
