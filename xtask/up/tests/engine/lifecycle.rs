//! The life of an engine: paused and resumed, beside a second engine, and removed completely.

use crate::container::{Container, Network};
use crate::ssh::{KeyPair, wait_for_banner};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use wharf_testkit::engine::PrivateEngine;
use wharf_testkit::http::Request;
use wharf_testkit::process::{find, output};

/// The mounts, interfaces, rules, files and processes of the machine, one per line.
pub fn remains() -> Result<String> {
    let mut remains = crate::read("/proc/self/mountinfo");
    for (program, arguments) in [
        ("ip", &["-brief", "link"][..]),
        ("nft", &["list", "tables"]),
        ("iptables", &["-S", "FORWARD"]),
        (
            "losetup",
            &["--list", "--noheadings", "--output", "BACK-FILE"],
        ),
        ("ls", &["/run"]),
        ("ps", &["-eo", "args"]),
    ] {
        // A private Incus does not need iptables.
        if find(program).is_none() {
            continue;
        }
        remains += &output(wharf_testkit::process::command(program).args(arguments))?;
    }
    // The command line of this test contains the name too.
    let lines = remains
        .lines()
        .filter(|line| !line.contains("target/release/deps"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Fails if a line contains any of these words.
pub fn assert_none(remains: &str, words: &[&str]) {
    let ours = |line: &&str| words.iter().any(|word| line.contains(word));
    let left: Vec<_> = remains.lines().filter(ours).collect();
    assert!(left.is_empty(), "left on the machine: {left:#?}");
}

pub fn pause_and_resume(engine: &mut PrivateEngine, key: &KeyPair) -> Result<()> {
    let client = engine.client();
    let network = Network::make(&client, 1)?;
    let container = Container::run(&network, 2, key)?;
    let pid = container.pid()?;
    engine.pause();
    ensure!(
        client.send(Request::new("GET", "/_ping")).is_err(),
        "the engine still responds"
    );
    ensure!(
        Path::new(&format!("/proc/{pid}")).exists(),
        "the container ended with the engine"
    );
    engine.resume()?;
    ensure!(container.pid()? == pid, "the container was restarted");
    wait_for_banner(container.port)?;
    key.run(container.port, "true")?;
    Ok(())
}

pub fn beside_another(engine: &PrivateEngine, key: &KeyPair) -> Result<()> {
    let network = Network::make(&engine.client(), 1)?;
    let container = Container::run(&network, 2, key)?;
    let other = crate::start("engine-test-2")?;
    ensure!(other.endpoint() != engine.endpoint());
    ensure!(
        crate::start("engine-test-2").is_err(),
        "two engines in one directory"
    );
    key.run(container.port, "true")?;
    other.stop()?;
    key.run(container.port, "true")?;
    let tables = output(Command::new("nft").args(["list", "tables"]))?;
    ensure!(
        tables.matches("wharf_").count() >= 1,
        "the other took the rules along"
    );
    Ok(())
}
