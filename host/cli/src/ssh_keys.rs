//! `wharf ssh-keys`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::output::Column::Text;
use crate::output::{note, table, time};
use anyhow::{Context, Result};
use clap::Subcommand;
use std::fs;
use std::path::{Path, PathBuf};
use wharf_client::Client;
use wharf_client::types::{SshKey, SshKeyRequest};

#[derive(Subcommand)]
pub enum SshKeys {
    /// List your saved keys
    Ls(Connection),
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
        match self {
            Self::Ls(connection) => {
                let keys = connection.client()?.list_ssh_keys().send().await?;
                connection.print(&keys, |keys| print(&keys))
            }
            Self::Add {
                name,
                file,
                connection,
            } => {
                let body = SshKeyRequest::new(name, public_key(&file)?);
                let client = connection.client()?;
                let saved = client.save_ssh_key(&body).send().await?;
                connection.print(&saved, |saved| print(&[saved]))
            }
            Self::Rm { name, connection } => {
                let client = connection.client()?;
                let key = saved(&client, &name).await?;
                client.delete_ssh_key(&key.id).send().await?;
                note(&format!("The key {name} is removed."));
                Ok(())
            }
        }
    }
}

fn print(keys: &[SshKey]) -> Result<()> {
    let columns = ["ID", "NAME", "FINGERPRINT", "CREATED"].map(Text);
    let row = |key: &SshKey| {
        let created = time(Some(&key.created_at));
        [
            key.id.clone(),
            key.name.clone(),
            key.fingerprint.clone(),
            created,
        ]
    };
    table(columns, keys.iter().map(row))
}

/// The saved key with this name or id.
pub async fn saved(client: &Client, name: &str) -> Result<SshKey> {
    let keys = client.list_ssh_keys().fetch().await?.0;
    let found = keys.iter().find(|key| key.name == name || key.id == name);
    Ok(found.cloned().ok_or_else(|| {
        let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
        let known = match names.as_slice() {
            [] => "you have saved none".to_owned(),
            names => format!("saved are {}", names.join(", ")),
        };
        Failure::NotFound(format!("There is no SSH key {name:?}; {known}."))
    })?)
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
