//! The command line of `wharf`, one file for each subcommand.

mod audit;
mod backup;
mod bill;
mod clock;
mod compact;
mod events;
mod forget;
mod fsck;
mod key;
mod node;
mod restore;
mod secrets;
mod serve;
mod user;

use crate::log;
use crate::operation::{Operation, perform};
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use wharf_config::Config;

/// The arguments of the program.
#[derive(Parser)]
#[command(
    name = "wharf",
    version,
    about = "Provisions containers and VMs over REST"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Key(key::Key),
    User(user::User),
    Events(events::Events),
    Bill(bill::Bill),
    Node(node::Node),
    Forget(forget::Forget),
    Audit(audit::Audit),
    Clock(clock::Clock),
    Fsck(fsck::Fsck),
    Compact(compact::Compact),
    Secrets(secrets::Secrets),
    Backup(backup::Backup),
    Restore(restore::Restore),
}

impl Cli {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        wharf_db::exit_on_damage();
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Key(key) => key.run(),
            Command::User(user) => user.run(),
            Command::Events(events) => events.run(),
            Command::Bill(bill) => bill.run(),
            Command::Node(node) => node.run(),
            Command::Forget(forget) => forget.run(),
            Command::Audit(audit) => audit.run(),
            Command::Clock(clock) => clock.run(),
            Command::Compact(compact) => compact.run(),
            Command::Fsck(fsck) => fsck.run(),
            Command::Secrets(secrets) => secrets.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
        }
    }
}

#[derive(Args)]
struct ConfigFile {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl ConfigFile {
    fn load(&self) -> Result<Config> {
        Ok(Config::load(&self.config)?)
    }

    /// Runs an operation, in the server if it runs.
    fn perform<O: Operation>(&self, operation: O) -> Result<O::Reply> {
        self.session()?.perform(operation)
    }

    /// Prepares several operations. A process has one session at most, since it has one log.
    fn session(&self) -> Result<Session> {
        Ok(Session {
            runtime: runtime()?,
            _log: log::to_stderr(false),
            config: self.load()?,
        })
    }
}

/// Runs operations, in the server if it runs.
struct Session {
    runtime: tokio::runtime::Runtime,
    _log: log::Log,
    config: Config,
}

impl Session {
    fn perform<O: Operation>(&self, operation: O) -> Result<O::Reply> {
        self.runtime.block_on(perform(&self.config, operation))
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
