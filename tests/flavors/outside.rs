//! Another machine from the instances' point of view: a network namespace behind a virtual cable.
//! Instances cannot reach the node, so their servers must not run on it.

use anyhow::Result;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use wharf_testkit::process::{output, succeeds};
use wharf_tests::free_network;

static NEXT: AtomicU8 = AtomicU8::new(0);

/// A machine, which exists until it is dropped.
pub struct Outside {
    name: String,
    cable: String,
    /// The machine's address.
    pub address: String,
}

impl Outside {
    /// Creates the machine.
    pub fn new() -> Result<Self> {
        // Private ranges are denied to instances; this one is for benchmarks of networks (RFC 2544).
        let prefix = format!("198.19.{}.", free_network()?);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}x{number}", std::process::id());
        let outside = Self {
            name: format!("outside{id}"),
            cable: format!("out{id}"),
            address: format!("{prefix}2"),
        };
        let (name, here, there) = (&outside.name, &outside.cable, "eth0");
        ip(&format!("netns add {name}"))?;
        ip(&format!(
            "link add {here} type veth peer name {there} netns {name}"
        ))?;
        ip(&format!("address add {prefix}1/30 dev {here}"))?;
        ip(&format!("link set {here} up"))?;
        for inside in [
            "link set lo up".to_owned(),
            format!("address add {prefix}2/30 dev {there}"),
            format!("link set {there} up"),
            format!("route add default via {prefix}1"),
        ] {
            ip(&format!("-netns {name} {inside}"))?;
        }
        Ok(outside)
    }

    /// Wraps a command so that it runs on the machine.
    pub fn command(&self, program: &Command) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name])
            .arg(program.get_program())
            .args(program.get_args());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // The namespace outlives its name for a while, and would keep the cable.
        succeeds(Command::new("ip").args(["link", "delete", &self.cable]));
        succeeds(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}

fn ip(words: &str) -> Result<()> {
    output(Command::new("ip").args(words.split_whitespace())).map(drop)
}
