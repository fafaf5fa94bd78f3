//! The command line of `wharf`: the commands of [`wharf_cli`] for users, and those of the operator, one file
//! for each.

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
mod move_instance;
mod node;
mod operator;
mod plugin;
mod prove;
mod restore;
mod secrets;
mod serve;
mod suspend;
mod user;

use crate::http::AdminRouter;
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches, Parser, Subcommand};
use operator::{OperatorCommand, Perform, operator_commands};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use wharf_cli::UserCommand;
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
    User(UserCommand),
    #[command(flatten)]
    Operator(OperatorCommands),
}

operator_commands! {
    /// The commands of the operator, and `events`, which users have too.
    pub enum OperatorCommands {
        Events(Box<events::Events>),
        Serve(serve::Serve),
        Check(check::Check),
        /// Create, list and revoke the API keys of any user
        #[command(subcommand)]
        Key(key::Key),
        /// List users, invite, disable and enable them, and set their limits
        #[command(subcommand)]
        User(user::User),
        Bill(bill::BillCommand),
        /// List and drain nodes, accept an engine after an outage, and give up a node that has failed
        #[command(subcommand)]
        Node(node::Node),
        Plugin(plugin::Plugin),
        Images(images::Images),
        Forget(Perform<forget::Forget>),
        Move(Perform<move_instance::Move>),
        Suspend(Perform<suspend::Suspend>),
        Resume(Perform<suspend::Resume>),
        Audit(audit::Audit),
        /// Show Wharf's time, or set it to the system's clock
        #[command(subcommand)]
        Clock(clock::ClockCommand),
        Fsck(fsck::Fsck),
        Compact(compact::Compact),
        /// Rotate the key of the secrets in the database
        #[command(subcommand)]
        Secrets(secrets::Secrets),
        Backup(Perform<backup::DatabaseBackup>),
        Restore(restore::DatabaseRestore),
        Manual(manual::Manual),
    }
}

/// Adds the operations of all commands to the admin service.
pub fn serve_operations(admin: AdminRouter) -> AdminRouter {
    OperatorCommands::serve(admin)
}

impl Cli {
    /// Reads the arguments and runs the subcommand.
    pub fn main() -> ExitCode {
        if let Some(asked) = wharf_cli::answer_if_asked() {
            return asked;
        }
        clap_complete::CompleteEnv::with_factory(help::command)
            .var(wharf_cli::COMPLETE_VARIABLE)
            .complete();
        let matches = help::command().get_matches();
        let parsed = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let Err(error) = parsed.run() else {
            return ExitCode::SUCCESS;
        };
        match wharf_cli::failure_message(&error) {
            Some(message) => {
                eprintln!("wharf: {message}");
                wharf_cli::failure_exit_code(&error).into()
            }
            None => ExitCode::SUCCESS,
        }
    }

    fn run(self) -> Result<()> {
        wharf_db::exit_on_damage();
        wharf_cli::output::heed_no_color();
        match self.command {
            Command::User(command) => command.run(),
            Command::Operator(command) => command.run(),
        }
    }
}

/// The configuration file where nothing names another one.
const CONFIG: &str = "/etc/wharf/wharf.toml";
/// The environment variable that names the configuration file.
const CONFIG_VARIABLE: &str = "WHARF_CONFIG";

#[derive(Args)]
pub struct ConfigFile {
    /// Configuration file (TOML); default: the variable WHARF_CONFIG, else /etc/wharf/wharf.toml
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// Whether the command line names the file.
    fn is_named(&self) -> bool {
        self.config.is_some()
    }

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
}

/// A number of things, in words for people.
fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
