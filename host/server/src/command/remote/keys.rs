//! `wharf keys`.

use super::connection::Connection;
use super::output::{field, json, line, note, table, time};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;
use wharf_client::types::{KeyRequest, UserScope};

/// List, create and revoke your API keys
#[derive(Args)]
pub struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Subcommand)]
enum KeysCommand {
    /// List your keys
    Ls {
        #[command(flatten)]
        connection: Connection,
    },
    /// Create a key and print it; it cannot be shown again
    Create {
        /// A name for the key
        name: Option<String>,
        /// A scope of the key; can be given repeatedly. Default: those of the key in use
        #[arg(long = "scope", value_enum)]
        scopes: Vec<KeyScope>,
        /// Expiry of the key, an ISO 8601 date and time
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    /// Revoke a key with immediate effect
    Rm {
        /// The id of the key, as shown by `ls`
        id: String,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(ValueEnum, Clone, Copy)]
enum KeyScope {
    Read,
    Write,
}

impl Keys {
    pub async fn run(self) -> Result<()> {
        match self.command {
            KeysCommand::Ls { connection } => list(&connection).await,
            KeysCommand::Create {
                name,
                scopes,
                expires,
                connection,
            } => {
                let mut body = KeyRequest::new();
                body.name = name;
                body.expires_at = expires;
                let scopes: Vec<_> = scopes.into_iter().map(KeyScope::of_interface).collect();
                body.scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
                let client = connection.client()?;
                let created = client.create_key(&body).send().await?.into_value();
                match connection.is_json() {
                    true => json(&created),
                    false => line(&field(&created, "key")),
                }
            }
            KeysCommand::Rm { id, connection } => {
                connection.client()?.revoke_key(&id).send().await?;
                note(&format!("The key {id} is revoked."));
                Ok(())
            }
        }
    }
}

impl KeyScope {
    fn of_interface(self) -> UserScope {
        match self {
            Self::Read => UserScope::Read,
            Self::Write => UserScope::Write,
        }
    }
}

async fn list(connection: &Connection) -> Result<()> {
    let keys = connection.client()?.list_keys().send().await?.into_value();
    if connection.is_json() {
        return json(&keys);
    }
    let row = |key: &Value| {
        [
            field(key, "id"),
            field(key, "scopes"),
            time(key, "created_at"),
            time(key, "expires_at"),
            time(key, "last_used_at"),
            field(key, "name"),
        ]
    };
    let rows: Vec<_> = keys.as_array().into_iter().flatten().map(row).collect();
    table(
        ["ID", "SCOPES", "CREATED", "EXPIRES", "LAST USED", "NAME"],
        &rows,
    )
}
