//! The command line: flags and subcommands.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use wharf::http::AdminClient;
use wharf::log;
use wharf::server::open_db;
use wharf_config::Config;
use wharf_control::{Keys, Selector, history};
use wharf_domain::time::Timestamp;

#[derive(Parser)]
#[command(
    name = "wharf",
    version,
    about = "Provisions containers and VMs over REST"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve {
        #[command(flatten)]
        config: ConfigFile,
        /// Log one JSON object per line instead of text
        #[arg(long)]
        log_json: bool,
    },
    /// Create, list and revoke API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Show the events of an instance: time, event, state, size, reason
    Events {
        /// The UUID of an instance, or the name of one that is not deleted
        instance: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Show the cost of a user's instances: UUID and USD, then the total
    Bill {
        /// The user's e-mail address
        email: String,
        /// Start of the period, an ISO 8601 date or time; default: no limit
        #[arg(long, value_parser = timestamp)]
        from: Option<Timestamp>,
        /// End of the period, exclusive, an ISO 8601 date or time; default: now
        #[arg(long, value_parser = timestamp)]
        to: Option<Timestamp>,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Check the consistency of the database; the server must not be running
    Fsck {
        #[command(flatten)]
        config: ConfigFile,
    },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Create a key for a user and print it; it cannot be shown again
    New {
        /// The user's e-mail address
        email: String,
        /// A name for the key
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// List keys: id, user, name, time of creation, time of revocation
    List {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Revoke a key with immediate effect
    Revoke {
        /// The id of the key, as shown by `list`
        id: String,
        #[command(flatten)]
        config: ConfigFile,
    },
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
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Print the error and its causes on one line, since a backtrace does not help an operator.
        Err(error) => {
            eprintln!("wharf: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match cli.command {
        Command::Serve { config, log_json } => {
            let log = log::to_stderr(log_json);
            let config = config.load()?;
            runtime.block_on(async {
                tokio::select! {
                    served = serve(config) => served,
                    () = log.report() => Ok(()),
                }
            })
        }
        Command::Key { command } => {
            let _log = log::to_stderr(false);
            runtime.block_on(key(command))
        }
        Command::Events { instance, config } => {
            let _log = log::to_stderr(false);
            runtime.block_on(events(&instance, &config.load()?))
        }
        Command::Bill {
            email,
            from,
            to,
            config,
        } => {
            let _log = log::to_stderr(false);
            let span = (
                from.unwrap_or_default(),
                to.unwrap_or_else(wharf_control::now),
            );
            runtime.block_on(bill(&email, span, &config.load()?))
        }
        Command::Fsck { config } => {
            let wrong = open_db(&config.load()?)?.0.fsck()?;
            for line in &wrong {
                println!("{line}");
            }
            if !wrong.is_empty() {
                bail!("the database has {} inconsistencies", wrong.len());
            }
            println!("the database is consistent");
            Ok(())
        }
    }
}

fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("must be like 2026-11-20 or 2026-11-20T19:55:44Z")
}

async fn serve(config: Config) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let listening = |address| {
        println!("listening on {scheme}://{address}");
        drop(std::io::stdout().flush());
    };
    Ok(wharf::server::serve(config, listening, stop).await?)
}

async fn events(instance: &str, config: &Config) -> Result<()> {
    let lines = match AdminClient::connect(&config.admin_socket()).await? {
        Some(mut server) => server.events(instance).await?,
        None => history::events(&open_db(config)?.0, &Selector::parse(instance))
            .with_context(|| format!("instance {instance}"))?,
    };
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

async fn bill(email: &str, (from, to): (Timestamp, Timestamp), config: &Config) -> Result<()> {
    let lines = match AdminClient::connect(&config.admin_socket()).await? {
        Some(mut server) => server.bill(email, from, to).await?,
        None => history::bill(&open_db(config)?.0, email, from, to)
            .with_context(|| format!("user {email}"))?,
    };
    for line in &lines {
        println!("{}\t{}", line.uuid, history::usd(line.nano_usd));
    }
    let sum = lines.iter().map(|line| line.nano_usd).sum();
    println!("total\t{}", history::usd(sum));
    Ok(())
}

/// Runs a key command on the running server, or on the database if no server runs.
async fn key(command: KeyCommand) -> Result<()> {
    let config = match &command {
        KeyCommand::New { config, .. }
        | KeyCommand::List { config }
        | KeyCommand::Revoke { config, .. } => config.load()?,
    };
    let server = AdminClient::connect(&config.admin_socket()).await?;
    let keys = || -> Result<Keys> { Ok(Keys::load(open_db(&config)?.0)?) };
    match command {
        KeyCommand::New { email, name, .. } => {
            let key = match server {
                Some(mut server) => server.new_key(&email, &name).await?,
                None => keys()?.new_key(&email, &name).await?,
            };
            println!("{}", key.key.expose());
        }
        KeyCommand::List { .. } => {
            let list = match server {
                Some(mut server) => server.list().await?,
                None => keys()?.list()?,
            };
            for key in list {
                let revoked = key.revoked_at.map_or("-".to_owned(), |at| at.to_rfc3339());
                println!(
                    "{}\t{}\t{}\t{}\t{revoked}",
                    key.id,
                    key.email,
                    key.name,
                    key.created_at.to_rfc3339()
                );
            }
        }
        KeyCommand::Revoke { id, .. } => match server {
            Some(mut server) => server.revoke(&id).await?,
            None => keys()?
                .revoke(&id)
                .await
                .with_context(|| format!("key {id}"))?,
        },
    }
    Ok(())
}
