//! The addresses that root inside an instance reaches, with and without the node's rules.

use crate::container::{Container, Network};
use crate::outside::{BEYOND, LINK_LOCAL, NODE, NODE_PORT, Outside};
use crate::ssh::KeyPair;
use anyhow::{Result, ensure};
use std::process::Command;
use wharf_testkit::http::Client;
use wharf_testkit::process::output;

/// A shell command that fails unless it can connect.
pub fn connect(address: &str, port: u16) -> String {
    format!("timeout 1 bash -c 'exec 3<>/dev/tcp/{address}/{port}'")
}

/// The networks of two owners with their instances, and the addresses that must be closed to them.
struct Scene {
    outside: Outside,
    mine: Container,
    sibling: Container,
    stranger: Container,
    gateway: String,
    _networks: [Network; 2],
}

impl Scene {
    fn make(client: &Client, key: &KeyPair) -> Result<Self> {
        let networks = [Network::make(client, 1)?, Network::make(client, 2)?];
        let [first, second] = &networks;
        Ok(Self {
            outside: Outside::make()?,
            mine: Container::run(first, 2, key)?,
            sibling: Container::run(first, 3, key)?,
            stranger: Container::run(second, 2, key)?,
            gateway: first.gateway(),
            _networks: networks,
        })
    }

    fn reaches(&self, key: &KeyPair, address: &str, port: u16) -> Result<bool> {
        let script = format!("sudo {} 2>/dev/null; echo $?", connect(address, port));
        Ok(key.run(self.mine.port, &script)? == "0")
    }

    fn forbidden(&self) -> [(&str, u16); 6] {
        [
            (&self.gateway, NODE_PORT),
            (NODE, NODE_PORT),
            (LINK_LOCAL, NODE_PORT),
            (&self.stranger.address, 22),
            // The published port of another instance, on the node.
            (&self.gateway, self.stranger.port),
            // The loopback of the instance, not of the node.
            ("127.0.0.1", NODE_PORT),
        ]
    }
}

/// Closed addresses are closed, and open ones are open; without the rules all are open.
pub fn holds(client: &Client, key: &KeyPair) -> Result<()> {
    let scene = Scene::make(client, key)?;
    rules_hold(&scene, key)?;
    is_due_to_the_rules(&scene, key)
}

fn rules_hold(scene: &Scene, key: &KeyPair) -> Result<()> {
    for (address, port) in scene.forbidden() {
        ensure!(
            !scene.reaches(key, address, port)?,
            "reaches {address}:{port}"
        );
    }
    ensure!(
        scene.reaches(key, &scene.sibling.address, 22)?,
        "the same owner's other instance"
    );
    let caller = "exec 3<>/dev/tcp/198.51.100.2/80; cat <&3";
    ensure!(scene.reaches(key, BEYOND, 80)?, "the world outside");
    ensure!(
        key.run(scene.mine.port, caller)? == NODE,
        "its calls look like the node's"
    );
    ensure!(
        key.run(scene.mine.port, "getent hosts wharf-test-1-3")?
            .starts_with(&scene.sibling.address)
    );
    ensure!(
        !scene.outside.reaches(&scene.mine.address, 22),
        "from outside, past the published port"
    );
    Ok(())
}

fn is_due_to_the_rules(scene: &Scene, key: &KeyPair) -> Result<()> {
    let tables = output(Command::new("nft").args(["list", "tables"]))?;
    for table in tables.lines().filter(|line| line.contains("wharf_")) {
        let words = table.split(' ').skip(1);
        let ruleset = output(Command::new("nft").args(["list"]).args(table.split(' ')))?;
        println!("{ruleset}");
        // Flushed, not deleted: the engine deletes the table itself.
        output(Command::new("nft").args(["flush", "table"]).args(words))?;
    }
    for (address, port) in [
        (scene.gateway.as_str(), NODE_PORT),
        (NODE, NODE_PORT),
        (LINK_LOCAL, NODE_PORT),
        (&scene.stranger.address, 22),
    ] {
        ensure!(
            scene.reaches(key, address, port)?,
            "{address}:{port} is refused by something else"
        );
    }
    ensure!(
        scene.outside.reaches(&scene.mine.address, 22),
        "from outside"
    );
    Ok(())
}
