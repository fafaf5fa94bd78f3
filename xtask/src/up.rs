//! `cargo xtask up`: from nothing to a running Wharf with a first instance.

mod account;
mod admin;
mod asker;
mod choice;
mod config;
mod given;
mod machine;
mod nodes;
mod proof;
mod sockets;
mod traces;
mod warnings;
mod words;

use crate::engine::Options as EngineOptions;
use crate::server::Server;
use crate::signals::Signals;
use crate::{build, say, workspace};
use account::Account;
use admin::Admin;
use anyhow::{Context, Result, bail};
use choice::Choice;
use config::Ports;
use nodes::Nodes;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// In the directory of a run.
const LOG: &str = "wharf.log";
/// Of a log, when a check fails.
const LAST_LINES: usize = 12;

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
    let choice = Choice::make(&options.engine)?;
    let dir = directory(options, &choice)?;
    // Its end would stop what another run has started.
    let _lock = lock(&dir)?;
    let result = come_up(options, &choice, &dir, &signals);
    if options.check {
        if result.is_err() {
            say::note(&end_of(&dir.join(LOG)));
        }
        let removed = fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()));
        // Only if nothing else is in there.
        let _ = dir.parent().map(fs::remove_dir);
        if let (Err(error), Err(_)) = (&removed, &result) {
            say::note(&format!("The check's directory stays: {error:#}"));
        }
        return result.and(removed);
    }
    result
}

/// The engine that `up` starts in its default directory.
pub fn engine_options() -> Result<EngineOptions> {
    nodes::engine_options(&workspace::root().join(".wharf"))
}

fn come_up(options: &Options, choice: &Choice, dir: &Path, signals: &Signals) -> Result<()> {
    build::wharf()?;
    signals.check()?;
    let wanted = nodes::Wanted {
        vms: options.vms,
        check: options.check,
    };
    // Wharf, which comes later, ends before it when something fails.
    let nodes = Nodes::start(choice, &wanted, dir, signals)?;
    signals.check()?;
    let config = dir.join(config::FILE);
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
    let server = Server::start(&config, &dir.join(LOG))?;
    let admin = Admin::of(&data);
    let installation = admin.installation()?;
    nodes.belong_to(&installation)?;
    let account = Account::open(dir, &config, &server)?;
    let traces = nodes.are_real().then(|| nodes.traces(&installation));
    let proof = proof::Proof::new(&server, &account, &admin, traces, options.check)?;
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

fn directory(options: &Options, choice: &Choice) -> Result<PathBuf> {
    let base = options
        .dir
        .clone()
        .unwrap_or_else(|| workspace::root().join(".wharf"));
    // A check has nothing to do with what a user has running.
    let dir = if options.check {
        base.join(format!("check-{}", std::process::id()))
    } else {
        choice.directory(&base)
    };
    let writable = fs::create_dir_all(&dir).and_then(|()| tempfile::tempfile_in(&dir).map(drop));
    writable.with_context(|| {
        format!(
            "{} cannot be written to; --dir DIRECTORY keeps it all elsewhere",
            dir.display()
        )
    })?;
    Ok(dir.canonicalize()?)
}

fn lock(dir: &Path) -> Result<File> {
    let file = File::create(dir.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another `cargo xtask up` runs in {}; --dir DIRECTORY keeps a second one apart",
            dir.display()
        ),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// What a check says about its failure, whose files go.
fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    // Each of our own questions has a line.
    let lines = text.lines().rev();
    let lines = lines.filter(|line| !line.contains("wharf::request"));
    let lines: Vec<_> = lines.take(LAST_LINES).collect();
    let lines: Vec<_> = lines.into_iter().rev().collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("The end of Wharf's log:\n{}", lines.join("\n")),
    }
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
