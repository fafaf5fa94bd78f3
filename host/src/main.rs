//! The command line: flags and subcommands only.

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use wharf::app::Keys;
use wharf::config::Config;
use wharf::http::AdminClient;

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
        /// One JSON object a line instead of text
        #[arg(long)]
        log_json: bool,
    },
    /// Make, list and revoke API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Check the database's tables against each other; the server must not run
    Fsck {
        #[command(flatten)]
        config: ConfigFile,
    },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Make a key for a user and print it; it is shown only now
    New {
        /// The user's e-mail address
        email: String,
        /// What to call the key
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// List keys: id, user, name, when made, when revoked
    List {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Make a key invalid at once
    Revoke {
        /// The key's id, as `list` shows it
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

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match cli.command {
        Command::Serve { config, log_json } => {
            log_to_stderr(log_json);
            runtime.block_on(serve(config.load()?))
        }
        Command::Key { command } => {
            log_to_stderr(false);
            runtime.block_on(key(command))
        }
        Command::Fsck { config } => {
            let wrong = wharf::server::open_db(&config.load()?)?.fsck()?;
            for line in &wrong {
                println!("{line}");
            }
            if !wrong.is_empty() {
                bail!("{} contradictions", wrong.len());
            }
            println!("the database is consistent");
            Ok(())
        }
    }
}

fn log_to_stderr(json: bool) {
    let filter = EnvFilter::try_from_env("WHARF_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        log.json().init();
    } else {
        log.with_ansi(false).init();
    }
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

/// Through the running server if there is one, else on its database.
async fn key(command: KeyCommand) -> Result<()> {
    let config = match &command {
        KeyCommand::New { config, .. }
        | KeyCommand::List { config }
        | KeyCommand::Revoke { config, .. } => config.load()?,
    };
    let server = AdminClient::connect(&config.admin_socket()).await?;
    let keys = || -> Result<Keys> { Ok(Keys::load(wharf::server::open_db(&config)?)?) };
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
