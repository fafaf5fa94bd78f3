//! The command line of `wharf`, one file for each subcommand. Commands for users are in `remote`.

mod audit;
mod backup;
mod bill;
mod check;
mod clock;
mod compact;
mod events;
mod forget;
mod fsck;
mod help;
mod images;
mod key;
mod manual;
mod node;
mod plugin;
mod remote;
mod restore;
mod secrets;
mod serve;
mod suspend;
mod user;

use crate::log;
use crate::operation::{Operation, perform};
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches, Parser, Subcommand};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use wharf_config::{Config, ConfigError};

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
    #[command(flatten)]
    Remote(remote::Remote),
    Events(Box<events::Events>),
    Serve(serve::Serve),
    Check(check::Check),
    Key(key::Key),
    User(user::User),
    Bill(bill::Bill),
    Node(node::Node),
    Plugin(plugin::Plugin),
    Images(images::Images),
    Forget(forget::Forget),
    Suspend(suspend::Suspend),
    Resume(suspend::Resume),
    Audit(audit::Audit),
    Clock(clock::Clock),
    Fsck(fsck::Fsck),
    Compact(compact::Compact),
    Secrets(secrets::Secrets),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Manual(manual::Manual),
}

impl Cli {
    /// Reads the arguments and runs the subcommand.
    pub fn main() -> ExitCode {
        if let Some(asked) = remote::answer_if_asked() {
            return asked;
        }
        clap_complete::CompleteEnv::with_factory(help::command)
            .var(remote::COMPLETE_VARIABLE)
            .complete();
        let matches = help::command().get_matches();
        let parsed = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let Err(error) = parsed.run() else {
            return ExitCode::SUCCESS;
        };
        match remote::describe(&error) {
            Some(message) => {
                eprintln!("wharf: {message}");
                remote::exit_code(&error).into()
            }
            None => ExitCode::SUCCESS,
        }
    }

    fn run(self) -> Result<()> {
        wharf_db::exit_on_damage();
        remote::output::heed_no_color();
        match self.command {
            Command::Remote(remote) => remote.run(),
            Command::Events(events) => events.run(),
            Command::Serve(serve) => serve.run(),
            Command::Check(check) => check.run(),
            Command::Key(key) => key.run(),
            Command::User(user) => user.run(),
            Command::Bill(bill) => bill.run(),
            Command::Node(node) => node.run(),
            Command::Plugin(plugin) => plugin.run(),
            Command::Images(images) => images.run(),
            Command::Forget(forget) => forget.run(),
            Command::Suspend(suspend) => suspend.run(),
            Command::Resume(resume) => resume.run(),
            Command::Audit(audit) => audit.run(),
            Command::Clock(clock) => clock.run(),
            Command::Compact(compact) => compact.run(),
            Command::Fsck(fsck) => fsck.run(),
            Command::Secrets(secrets) => secrets.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
            Command::Manual(manual) => manual.run(),
        }
    }
}

/// The configuration file where nothing names another one.
const CONFIG: &str = "/etc/wharf/wharf.toml";
/// The environment variable that names the configuration file.
const CONFIG_VARIABLE: &str = "WHARF_CONFIG";

#[derive(Args)]
struct ConfigFile {
    /// Configuration file (TOML); default: the variable WHARF_CONFIG, else /etc/wharf/wharf.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn path(&self) -> PathBuf {
        let named = self.config.clone();
        let named = named.or_else(|| std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
        let named = named.filter(|path| !path.as_os_str().is_empty());
        named.unwrap_or_else(|| CONFIG.into())
    }

    fn load(&self) -> Result<Config> {
        let path = self.path();
        let loaded = Config::load(&path);
        let missing = |error: &ConfigError| match error {
            ConfigError::Read { source, .. } => source.kind() == ErrorKind::NotFound,
            _ => false,
        };
        match loaded {
            Err(error) if self.config.is_none() && missing(&error) => bail!(
                "there is no configuration {}; name one with --config FILE or {CONFIG_VARIABLE}",
                path.display()
            ),
            loaded => Ok(loaded?),
        }
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
