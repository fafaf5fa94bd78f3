//! The network as seen from an instance, and listeners on the node for it to try.

use crate::lab::inside;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A link-local address that these tests assign to their own interface.
const LINK_LOCAL: &str = "169.254.77.1";
const INTERFACE: &str = "whtest0";
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns whether a TCP connection from the instance, as root, is accepted.
pub fn connects(from: &Value, address: &str, port: u16) -> Result<bool> {
    Ok(reached(from, &[address], port)?.len() == 1)
}

/// Returns the addresses that accept a TCP connection from the instance, as root. It uses one login
/// for all.
pub fn reached(from: &Value, addresses: &[&str], port: u16) -> Result<Vec<String>> {
    // Concurrent attempts: a dropped packet costs the whole timeout.
    let script = format!(
        r#"
import socket, concurrent.futures
def reached(address):
    try:
        socket.create_connection((address, {port}), 3).close()
        return [address]
    except OSError:
        return []
addresses = "{}".split()
with concurrent.futures.ThreadPoolExecutor(32) as threads:
    print(*sum(threads.map(reached, addresses), []))
"#,
        addresses.join(" ")
    );
    let output = inside(from, &format!("sudo python3 -c '{script}'"))?;
    Ok(output.split_whitespace().map(str::to_owned).collect())
}

/// Returns the address of an instance's gateway.
pub fn gateway(from: &Value) -> Result<String> {
    let script = "python3 -c \"print('.'.join(str(b) for b in bytes.fromhex([l.split()[2] for l in \
                  open('/proc/net/route') if l.split()[1]=='00000000'][0])[::-1]))\"";
    inside(from, script)
}

/// A listener on every address of the node, and on a link-local one.
pub struct Listener {
    tcp: TcpListener,
    port: u16,
    _link_local: LinkLocal,
}

impl Listener {
    /// Starts the listener.
    pub fn everywhere() -> Result<Self> {
        let link_local = LinkLocal::up()?;
        let tcp = TcpListener::bind("0.0.0.0:0")?;
        let port = tcp.local_addr()?.port();
        Ok(Self {
            tcp,
            port,
            _link_local: link_local,
        })
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns all addresses at which the node itself reaches the listener, which must include
    /// `more`.
    pub fn addresses(&self, more: &[&str]) -> Result<Vec<String>> {
        let reaches = |address: &str| TcpStream::connect((address, self.port));
        let mut addresses: Vec<_> = more
            .iter()
            .copied()
            .chain([LINK_LOCAL, "127.0.0.1"])
            .map(str::to_owned)
            .collect();
        for address in &addresses {
            reaches(address).with_context(|| format!("the listener on {address} is not there"))?;
        }
        let known = addresses.len();
        let all = String::from_utf8(Command::new("hostname").arg("-I").output()?.stdout)?;
        // Bridges of other tests come and go meanwhile. An address that the node itself cannot
        // reach no longer exists.
        let others = all
            .split_whitespace()
            .filter(|a| !a.contains(':') && reaches(a).is_ok());
        addresses.extend(others.map(str::to_owned));
        ensure!(addresses.len() > known, "no other address of the node");
        self.tcp.set_nonblocking(true)?;
        Ok(addresses)
    }
}

struct LinkLocal(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl LinkLocal {
    fn up() -> Result<Self> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let ip = |args: &[&str]| Command::new("ip").args(args).status();
        drop(Command::new("ip").args(["link", "del", INTERFACE]).output());
        ensure!(
            ip(&["link", "add", INTERFACE, "type", "bridge"])?.success(),
            "no interface for the link-local address"
        );
        let this = Self(alone);
        let cidr = format!("{LINK_LOCAL}/32");
        ensure!(ip(&["addr", "add", &cidr, "dev", INTERFACE])?.success());
        ensure!(ip(&["link", "set", INTERFACE, "up"])?.success());
        Ok(this)
    }
}

impl Drop for LinkLocal {
    fn drop(&mut self) {
        drop(Command::new("ip").args(["link", "del", INTERFACE]).status());
    }
}
