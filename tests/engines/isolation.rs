//! What an instance reaches, tried from a root shell inside.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use wharf_tests::{Api, Login};

/// An address of the link-local range that these tests put on an interface of their own.
const LINK_LOCAL: &str = "169.254.77.1";
const DUMMY: &str = "whtest0";

fn running(api: &Api) -> Result<Value> {
    let created = api.small_container()?;
    api.wait_for(created["uuid"].as_str().unwrap_or_default(), "running")
}

fn password(instance: &Value) -> &str {
    instance["original_service_password"]
        .as_str()
        .unwrap_or_default()
}

/// Whether a TCP connection from inside, as root, is accepted.
fn connects(from: &Value, address: &str, port: u16) -> Result<bool> {
    let script = format!(
        "import socket; s = socket.create_connection((\"{address}\", {port}), 3); print(\"in\")"
    );
    let output =
        Login::Password(password(from)).run(from, &format!("sudo python3 -c '{script}'"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "in")
}

struct LinkLocal;

impl LinkLocal {
    fn up() -> Result<Self> {
        let ip = |args: &[&str]| Command::new("ip").args(args).status();
        drop(ip(&["link", "del", DUMMY]));
        ensure!(
            ip(&["link", "add", DUMMY, "type", "bridge"])?.success(),
            "no interface for the link-local address"
        );
        let this = Self;
        let cidr = format!("{LINK_LOCAL}/32");
        ensure!(ip(&["addr", "add", &cidr, "dev", DUMMY])?.success());
        ensure!(ip(&["link", "set", DUMMY, "up"])?.success());
        Ok(this)
    }
}

impl Drop for LinkLocal {
    fn drop(&mut self) {
        drop(Command::new("ip").args(["link", "del", DUMMY]).status());
    }
}

pub fn root_shell(context: &Context) -> Result<()> {
    let server = context.server()?;
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let (mine, theirs) = (running(&ann)?, running(&bob)?);
    let inside = Login::Password(password(&mine));

    // On every address of the node, and on a link-local one; all answer from the node itself.
    let _link_local = LinkLocal::up()?;
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    let gateway = inside.output(
        &mine,
        "python3 -c \"print('.'.join(str(b) for b in bytes.fromhex([l.split()[2] for l in open('/proc/net/route') if l.split()[1]=='00000000'][0])[::-1]))\"",
    )?;
    let mut addresses = vec![gateway, LINK_LOCAL.to_owned(), "127.0.0.1".to_owned()];
    for address in &addresses {
        TcpStream::connect((address.as_str(), port))
            .with_context(|| format!("the listener on {address} is not there"))?;
    }
    let all = String::from_utf8(Command::new("hostname").arg("-I").output()?.stdout)?;
    // Bridges of other tests' networks come and go meanwhile: what the node itself cannot reach now
    // is no address of it any more.
    addresses.extend(
        all.split_whitespace()
            .filter(|a| !a.contains(':') && TcpStream::connect((*a, port)).is_ok())
            .map(str::to_owned),
    );
    ensure!(
        addresses.len() > 3,
        "no other address of the node was tried"
    );
    for address in &addresses {
        ensure!(
            !connects(&mine, address, port)?,
            "the node's {address} is reachable"
        );
    }
    // The interface itself, which listens on the node's loopback.
    let api_port: u16 = server
        .base_url()
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .parse()?;
    for address in &addresses {
        ensure!(
            !connects(&mine, address, api_port)?,
            "Wharf is reachable at {address}"
        );
    }

    // Another owner's instance: its address, and its published port on the node.
    let lan = theirs["lan_ipv4"].as_str().unwrap_or_default();
    TcpStream::connect((lan, 22)).context("the other instance is not there")?;
    ensure!(
        !connects(&mine, lan, 22)?,
        "another owner's {lan} is reachable"
    );
    // Not that nothing at all were reachable from in there.
    ensure!(connects(
        &mine,
        mine["lan_ipv4"].as_str().unwrap_or_default(),
        22
    )?);

    // The engine's socket is on no file system of the instance.
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
    // No way to devices or kernel settings of the node either.
    for attempt in [
        "sudo mount -t tmpfs none /mnt",
        "sudo sh -c 'echo 1 > /proc/sys/kernel/panic'",
        "sudo sh -c 'test -b /dev/vda || mknod /dev/vda b 254 0; head -c 1 /dev/vda'",
        "sudo chroot /proc/1/root/../.. test -d /work",
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
