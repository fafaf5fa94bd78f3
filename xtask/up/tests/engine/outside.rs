//! Servers that instances may try to reach: on the node, and on a machine beyond it.

use anyhow::{Context, Result};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use wharf_testkit::process::output;

/// The port of a server on every address of the node.
pub const NODE_PORT: u16 = 29_990;
/// The address of an interface of the test.
pub const LINK_LOCAL: &str = "169.254.77.1";
/// The node's address for the machine beyond.
pub const NODE: &str = "198.51.100.1";
/// The machine beyond: a network namespace, whose server on port 80 responds with the caller's address.
pub const BEYOND: &str = "198.51.100.2";

const SERVER: &str = "use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalPort => 80, Listen => 5, \
    ReuseAddr => 1) or die; while (my $c = $s->accept) { print $c $c->peerhost; close $c }";

pub struct Outside {
    server: Option<Child>,
}

impl Outside {
    pub fn make() -> Result<Self> {
        let mut outside = Self { server: None };
        outside.remove();
        for command in [
            "link add wharflink type bridge",
            "address add 169.254.77.1/24 dev wharflink",
            "link set wharflink up",
            "netns add wharf-test",
            "link add wharfout type veth peer name eth0 netns wharf-test",
            "address add 198.51.100.1/24 dev wharfout",
            "link set wharfout up",
            "-n wharf-test address add 198.51.100.2/24 dev eth0",
            "-n wharf-test link set eth0 up",
            "-n wharf-test link set lo up",
            "-n wharf-test route add default via 198.51.100.1",
        ] {
            ip(command)?;
        }
        outside.server = Some(
            Command::new("ip")
                .args(["netns", "exec", "wharf-test", "perl", "-e", SERVER])
                .stdin(Stdio::null())
                .spawn()?,
        );
        let listener = TcpListener::bind(("0.0.0.0", NODE_PORT)).context("the node's listener")?;
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(b"node");
            }
        });
        Ok(outside)
    }

    /// Whether the machine beyond can connect to an address.
    pub fn reaches(&self, address: &str, port: u16) -> bool {
        let mut connect = Command::new("ip");
        connect.args([
            "netns",
            "exec",
            "wharf-test",
            "bash",
            "-c",
            &super::isolation::connect(address, port),
        ]);
        output(&mut connect).is_ok()
    }

    fn remove(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for command in [
            "netns delete wharf-test",
            "link delete wharflink",
            "link delete wharfout",
        ] {
            let _ = ip(command);
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &str) -> Result<String> {
    output(Command::new("ip").args(arguments.split(' ')))
}
