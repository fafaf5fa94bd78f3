//! `wharf ssh-keys`.

use super::connection::Connection;
use super::failure::Failure;
use super::output::{field, json, note, table, time};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use wharf_client::Client;
use wharf_client::types::SshKeyRequest;

/// List, add and remove the SSH public keys that are saved on the server
#[derive(Args)]
pub struct SshKeys {
    #[command(subcommand)]
    command: SshKeysCommand,
}

#[derive(Subcommand)]
enum SshKeysCommand {
    /// List your saved keys
    Ls {
        #[command(flatten)]
        connection: Connection,
    },
    /// Save a key
    Add {
        /// A name for the key
        name: String,
        /// File of an OpenSSH public key, such as ~/.ssh/id_ed25519.pub
        file: PathBuf,
        #[command(flatten)]
        connection: Connection,
    },
    /// Remove a saved key; instances keep it
    Rm {
        /// Name or id of the key
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
}

impl SshKeys {
    pub async fn run(self) -> Result<()> {
        match self.command {
            SshKeysCommand::Ls { connection } => list(&connection).await,
            SshKeysCommand::Add {
                name,
                file,
                connection,
            } => {
                let body = SshKeyRequest::new(name, public_key(&file)?);
                let client = connection.client()?;
                let saved = client.save_ssh_key(&body).send().await?.into_value();
                match connection.is_json() {
                    true => json(&saved),
                    false => rows(std::slice::from_ref(&saved)),
                }
            }
            SshKeysCommand::Rm { name, connection } => {
                let client = connection.client()?;
                let id = field(&saved(&client, &name).await?, "id");
                client.delete_ssh_key(&id).send().await?;
                note(&format!("The key {name} is removed."));
                Ok(())
            }
        }
    }
}

async fn list(connection: &Connection) -> Result<()> {
    let keys = all(&connection.client()?).await?;
    match connection.is_json() {
        true => json(&keys.into()),
        false => rows(&keys),
    }
}

fn rows(keys: &[Value]) -> Result<()> {
    let row = |key: &Value| {
        [
            field(key, "id"),
            field(key, "name"),
            field(key, "fingerprint"),
            time(key, "created_at"),
        ]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    table(["ID", "NAME", "FINGERPRINT", "CREATED"], &rows)
}

async fn all(client: &Client) -> Result<Vec<Value>> {
    let keys = client.list_ssh_keys().send().await?;
    Ok(keys.value().as_array().cloned().unwrap_or_default())
}

/// The saved key with this name or id.
async fn saved(client: &Client, name: &str) -> Result<Value> {
    let keys = all(client).await?;
    let is_it = |key: &&Value| {
        ["name", "id"]
            .iter()
            .any(|field| key.get(field).and_then(Value::as_str) == Some(name))
    };
    let found = keys.iter().find(is_it).cloned();
    Ok(found.ok_or_else(|| {
        let names: Vec<_> = keys.iter().map(|key| field(key, "name")).collect();
        let known = match names.as_slice() {
            [] => "you have saved none".to_owned(),
            names => format!("saved are {}", names.join(", ")),
        };
        Failure::NotFound(format!("There is no SSH key {name:?}; {known}."))
    })?)
}

/// The public key that is saved with this name.
pub async fn saved_key(client: &Client, name: &str) -> Result<String> {
    let key = saved(client, name).await?;
    let text = key.get("public_key").and_then(Value::as_str);
    Ok(text.context("the saved key has no public key")?.to_owned())
}

/// The public key in a file.
pub fn public_key(file: &Path) -> Result<String> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read the public key {}", file.display()))?;
    let shown = file.display();
    let refuse = |message| Err(Failure::Usage(message).into());
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") || bytes.contains(&0) {
        return refuse(format!(
            "{shown} is in UTF-16, as PowerShell's > writes it; save it as ASCII, such as with \
             `ssh-keygen -y -f KEY | Out-File -Encoding ascii {shown}`"
        ));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return refuse(format!(
            "{shown} is no text in UTF-8; save the key as ASCII"
        ));
    };
    if text.contains("PRIVATE KEY") {
        return refuse(format!(
            "{shown} is a private key; give the public one, such as {shown}.pub"
        ));
    }
    Ok(text.trim().to_owned())
}
