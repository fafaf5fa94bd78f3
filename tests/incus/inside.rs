//! Attempts to leave an instance from a root shell.

use super::context::IncusContext;
use crate::isolation::confined;
use crate::lab::{Neighbours, inside};
use anyhow::{Context as _, Result, ensure};
use std::net::TcpStream;
use wharf_testkit::incus::GATEWAY;
use wharf_tests::until;

/// The instance knows its own name and a name server, and the first start has removed the secrets.
pub fn names(_: &IncusContext, all: &mut Neighbours) -> Result<()> {
    let names = inside(&all.mine, "getent hosts $(uname -n); cat /etc/resolv.conf")?;
    ensure!(
        names.contains("127.0.1.1") && names.contains("nameserver"),
        "{names}"
    );
    let left = inside(&all.mine, "sudo ls -A /etc/wharf")?;
    ensure!(left == "environment\nnet", "{left}");
    Ok(())
}

pub fn isolation(context: &IncusContext, all: &mut Neighbours) -> Result<()> {
    let (mine, theirs) = (&all.mine, &all.theirs);
    let opens = |address: &str, port: u64| {
        let script =
            format!("sudo timeout 3 bash -c '</dev/tcp/{address}/{port}' && echo open; true");
        Ok::<_, anyhow::Error>(inside(mine, &script)?.contains("open"))
    };
    let port = theirs["wan_ssh_port"].as_u64().context("port")?;
    let member = context.member(1).address.as_str();
    TcpStream::connect((member, u16::try_from(port)?))
        .context("the other instance is not there")?;
    let lan = theirs["lan_ipv4"].as_str().context("lan_ipv4")?;
    for (address, port) in [
        (member, 8443),
        (context.member(0).address.as_str(), 8443),
        (GATEWAY, 8443),
        (GATEWAY, 22),
        (member, port),
        (lan, 22),
        ("169.254.169.254", 80),
    ] {
        ensure!(!opens(address, port)?, "{address}:{port} is reachable");
    }
    // A counter-check: the instance does reach something.
    let own = mine["lan_ipv4"].as_str().context("lan_ipv4")?;
    until("it reaches itself", || Ok(opens(own, 22)?.then_some(())))?;

    // An address of another instance carries no packets.
    let stolen = format!(
        "sudo ip address add {lan}/32 dev eth0; \
         python3 -c 'import socket; socket.create_connection((\"{GATEWAY}\", 53), 3, (\"{lan}\", 0))' \
         && echo open; sudo ip address delete {lan}/32 dev eth0"
    );
    ensure!(
        !inside(mine, &stolen)?.contains("open"),
        "a stolen address works"
    );
    confined(
        mine,
        &[
            "sudo mount -t tmpfs none /proc/sys && touch /proc/sys/x && echo 1 > /proc/sys/kernel/panic",
            "sudo chroot /proc/1/root/../.. test -d /var/lib/incus",
        ],
    )
}
