//! The engine itself: its socket gone and back, a second one beside it, and nothing left.

use crate::container::{Container, Network};
use crate::ssh::{KeyPair, wait_for_banner};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use xtask::engine::PrivateEngine;
use xtask::http::Request;
use xtask::process::output;

/// Where an engine could leave something, as lines that would name it.
pub fn traces() -> Result<String> {
    let mut traces = crate::read("/proc/self/mountinfo");
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
        traces += &output(xtask::process::command(program).args(arguments))?;
    }
    // This test's own command line names it too.
    let lines = traces
        .lines()
        .filter(|line| !line.contains("target/release/deps"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// No line names any of these.
pub fn assert_none(traces: &str, words: &[&str]) {
    let ours = |line: &&str| words.iter().any(|word| line.contains(word));
    let left: Vec<_> = traces.lines().filter(ours).collect();
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
        "the socket still answers"
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
