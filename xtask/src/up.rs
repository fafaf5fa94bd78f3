//! `cargo xtask up`: from nothing to a running Wharf with a first instance.

mod account;
mod config;
mod machine;
mod nodes;
mod proof;
mod sockets;
mod traces;
mod words;

use crate::engine::Options as EngineOptions;
use crate::server::Server;
use crate::signals::Signals;
use crate::{build, say, workspace};
use account::Account;
use anyhow::{Context, Result};
use config::Ports;
use nodes::Nodes;
use std::fs;
use std::path::PathBuf;

/// How to come up.
#[derive(clap::Args)]
pub struct Options {
    /// Prove that everything works, take it all down again, and end with status 0.
    #[arg(long)]
    check: bool,
    /// Use this engine instead of a dockerd of our own: unix:///path/to/its.sock. Several are
    /// several nodes.
    #[arg(long, value_name = "ENDPOINT")]
    engine: Vec<String>,
    /// Virtual machines too: makes their image, which takes minutes the first time, gives the node
    /// addresses for them that this machine alone reaches, and proves one.
    #[arg(long)]
    vms: bool,
    /// Where the configuration, the data and the keys are [default: .wharf in the checkout].
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

/// Brings it up, proves it, and stays until it is told to end.
pub fn run(options: &Options) -> Result<()> {
    let signals = Signals::catch()?;
    let dir = directory(options)?;
    let result = come_up(options, &dir, &signals);
    if options.check {
        fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        // Only if nothing else is in there.
        let _ = dir.parent().map(fs::remove_dir);
    }
    result
}

/// The engine that `up` starts in its default directory.
pub fn engine_options() -> Result<EngineOptions> {
    nodes::engine_options(&workspace::root().join(".wharf"), false)
}

fn come_up(options: &Options, dir: &std::path::Path, signals: &Signals) -> Result<()> {
    build::wharf()?;
    let wanted = nodes::Wanted {
        engines: &options.engine,
        vms: options.vms,
        check: options.check,
    };
    let nodes = Nodes::start(&wanted, dir, signals)?;
    signals.check()?;
    let config = dir.join("wharf.toml");
    let ports = if options.check {
        Ports::CHECK
    } else {
        Ports::USUAL
    };
    let data = dir.join("data");
    fs::write(
        &config,
        config::text(&data, ports, machine::listen(options.check), nodes.list()),
    )?;
    let server = Server::start(&config, &dir.join("wharf.log"))?;
    let account = Account::open(dir, &config, &server)?;
    let proof = proof::Proof::new(&server, &account, &nodes, options.check)?;
    let instance = proof.run(proof::CONTAINER, signals)?;
    if options.vms {
        proof.run(proof::VM, signals)?;
    }
    if !options.check {
        words::how_to_go_on(&server, &account, &config, &instance);
        stay(&server, signals);
    }
    say::step("Stopping Wharf");
    server.stop();
    nodes.stop()?;
    say::step(if options.check {
        "Everything works, and is gone again."
    } else {
        "Stopped."
    });
    Ok(())
}

fn directory(options: &Options) -> Result<PathBuf> {
    let base = options
        .dir
        .clone()
        .unwrap_or_else(|| workspace::root().join(".wharf"));
    // A check has nothing to do with what a user has running.
    let dir = if options.check {
        base.join(format!("check-{}", std::process::id()))
    } else {
        base
    };
    fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
    Ok(dir.canonicalize()?)
}

fn stay(server: &Server, signals: &Signals) {
    loop {
        if signals.wait(std::time::Duration::from_millis(500)) {
            return;
        }
        if let Some(status) = server.ended() {
            say::step(&format!(
                "Wharf ended by itself ({status}); see {}",
                server.log()
            ));
            return;
        }
    }
}
