//! The limits of an instance, and attempts to leave it from a root shell.

use crate::context::{Context, inside, remove, running};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::TcpStream;
use wharf_testkit::incus::GATEWAY;

pub fn limits(context: &Context) -> Result<()> {
    let server = context.server(&[0])?;
    let api = server.user("ann@example.com")?;
    let (one, other) = (running(&api)?, running(&api)?);
    for (command, expected) in [
        ("nproc", "1"),
        ("free --mebi | awk '/^Mem/ {print $2}'", "1024"),
    ] {
        let shown = inside(&one, command)?;
        ensure!(shown == expected, "{command}: {shown}");
    }
    ensure!(context.object(&one)?["config"]["limits.processes"] == "4096");
    let greedy = "python3 -c 'x = b\"x\" * (2 << 30)'";
    ensure!(inside(&one, greedy).is_err(), "2 GiB fit into 1");
    ensure!(inside(&one, "echo alive")? == "alive");
    // Root of an instance is an account without rights on the node, and another one for each.
    let root = |instance: &Value| {
        let map = inside(instance, "cat /proc/self/uid_map")?;
        let root = map.split_whitespace().nth(1);
        Ok::<_, anyhow::Error>(root.context("no map")?.to_owned())
    };
    let roots = [root(&one)?, root(&other)?];
    ensure!(roots[0] != "0" && roots[0] != roots[1], "{roots:?}");
    for instance in [one, other] {
        remove(context, &api, &instance)?;
    }
    server.finish()
}

pub fn isolation(context: &Context) -> Result<()> {
    let server = context.server(&[0])?;
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let (mine, theirs) = (running(&ann)?, running(&bob)?);
    let opens = |address: &str, port: u64| {
        let script =
            format!("sudo timeout 3 bash -c '</dev/tcp/{address}/{port}' && echo open; true");
        Ok::<_, anyhow::Error>(inside(&mine, &script)?.contains("open"))
    };
    let port = theirs["wan_ssh_port"].as_u64().context("port")?;
    let member = context.member(0).address.as_str();
    TcpStream::connect((member, u16::try_from(port)?))
        .context("the other instance is not there")?;
    let lan = theirs["lan_ipv4"].as_str().context("lan_ipv4")?;
    for (address, port) in [
        (member, 8443),
        (context.member(1).address.as_str(), 8443),
        (GATEWAY, 8443),
        (GATEWAY, 22),
        (member, port),
        (lan, 22),
        ("169.254.169.254", 80),
    ] {
        ensure!(!opens(address, port)?, "{address}:{port} is reachable");
    }
    // A counter-check: the instance does reach something.
    ensure!(opens(mine["lan_ipv4"].as_str().context("lan_ipv4")?, 22)?);

    // An address of another instance carries no packets.
    let stolen = format!(
        "sudo ip address add {lan}/32 dev eth0; \
         python3 -c 'import socket; socket.create_connection((\"{GATEWAY}\", 53), 3, (\"{lan}\", 0))' \
         && echo open; sudo ip address delete {lan}/32 dev eth0"
    );
    ensure!(
        !inside(&mine, &stolen)?.contains("open"),
        "a stolen address works"
    );
    for attempt in [
        "sudo mount -t tmpfs none /proc/sys && touch /proc/sys/x && echo 1 > /proc/sys/kernel/panic",
        "sudo sh -c 'echo 1 > /proc/sys/kernel/panic'",
        "sudo sh -c 'test -b /dev/vda || mknod /dev/vda b 254 0; head -c 1 /dev/vda'",
        "sudo chroot /proc/1/root/../.. test -d /var/lib/incus",
    ] {
        ensure!(inside(&mine, attempt).is_err(), "allowed: {attempt}");
    }
    remove(context, &ann, &mine)?;
    remove(context, &bob, &theirs)?;
    server.finish()
}
