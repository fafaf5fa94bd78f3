//! The engine itself: its socket gone and back, a second one beside it, and nothing left.

use crate::container::{Container, Network};
use crate::ssh::{KeyPair, wait_for_banner};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use xtask::engine::PrivateDockerd;
use xtask::http::Request;
use xtask::process::output;

/// What an engine could leave on the machine.
pub fn traces() -> Result<Vec<String>> {
    let mut traces: Vec<String> = Vec::new();
    let mounts = crate::read("/proc/self/mountinfo");
    traces.extend(
        mounts
            .lines()
            .filter(|line| line.contains("/run/wharf-"))
            .map(str::to_owned),
    );
    let links = output(Command::new("ip").args(["-brief", "link"]))?;
    let name = |line: &str| line.split(['@', ' ']).next().unwrap_or_default().to_owned();
    traces.extend(
        links
            .lines()
            .map(name)
            .filter(|link| link.starts_with("wh") || link.starts_with("veth")),
    );
    for (program, arguments) in [
        ("nft", &["list", "tables", "inet"][..]),
        ("iptables", &["-S", "FORWARD"]),
        (
            "losetup",
            &["--list", "--noheadings", "--output", "BACK-FILE"],
        ),
    ] {
        let lines = output(xtask::process::command(program).args(arguments))?;
        let ours = |line: &&str| line.contains("wharf") || line.contains("engine-test");
        traces.extend(lines.lines().filter(ours).map(str::to_owned));
    }
    let run = std::fs::read_dir("/run")?
        .flatten()
        .map(|entry| entry.path().display().to_string());
    traces.extend(run.filter(|path| path.starts_with("/run/wharf-")));
    traces.push(format!(
        "ip_forward {}",
        crate::read("/proc/sys/net/ipv4/ip_forward").trim()
    ));
    traces.sort();
    Ok(traces)
}

pub fn pause_and_resume(engine: &mut PrivateDockerd, key: &KeyPair) -> Result<()> {
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

pub fn beside_another(engine: &PrivateDockerd, key: &KeyPair) -> Result<()> {
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
