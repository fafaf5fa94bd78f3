//! `wharf key`.

use super::ConfigFile;
use super::bill::timestamp;
use crate::operation::key::{ListKeys, NewKey, RevokeKey};
use anyhow::Result;
use clap::{Args, Subcommand};
use wharf_domain::scope::Scope;
use wharf_domain::time::Timestamp;

/// Create, list and revoke the API keys of any user
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
        /// A scope of the key: read, write or metrics; can be given repeatedly. Default: all
        #[arg(long = "scope", value_parser = scope)]
        scopes: Vec<Scope>,
        /// Expiry of the key, an ISO 8601 date or time
        #[arg(long = "expires", value_parser = timestamp)]
        expires_at: Option<Timestamp>,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// List keys: id, user, name, time of creation, time of revocation, scopes, expiry, last use
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
                scopes,
                expires_at,
                config,
            } => {
                let new = NewKey {
                    email,
                    name,
                    scopes,
                    expires_at,
                };
                println!("{}", config.perform(new)?.key);
            }
            KeyCommand::List { config } => {
                for key in config.perform(ListKeys {})? {
                    let time =
                        |at: Option<Timestamp>| at.map_or("-".to_owned(), Timestamp::to_rfc3339);
                    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
                    println!(
                        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                        key.id,
                        key.email,
                        key.name,
                        key.created_at.to_rfc3339(),
                        time(key.revoked_at),
                        scopes.join(","),
                        time(key.expires_at),
                        time(key.last_used_at),
                    );
                }
            }
            KeyCommand::Revoke { id, config } => config.perform(RevokeKey { id })?,
        }
        Ok(())
    }
}

fn scope(text: &str) -> Result<Scope, &'static str> {
    Scope::parse(text).ok_or("must be read, write or metrics")
}
