//! `wharf key`.

use super::ConfigFile;
use crate::operation::key::{ListKeys, NewKey, RevokeKey};
use anyhow::Result;
use clap::{Args, Subcommand};

/// Create, list and revoke API keys
#[derive(Args)]
pub struct Key {
    #[command(subcommand)]
    command: KeyCommand,
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

impl Key {
    pub fn run(self) -> Result<()> {
        match self.command {
            KeyCommand::New {
                email,
                name,
                config,
            } => println!("{}", config.perform(NewKey { email, name })?.key),
            KeyCommand::List { config } => {
                for key in config.perform(ListKeys {})? {
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
            KeyCommand::Revoke { id, config } => config.perform(RevokeKey { id })?,
        }
        Ok(())
    }
}
