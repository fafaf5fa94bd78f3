//! `wharf rm`.

use super::connection::Connection;
use super::failure::Failure;
use super::names;
use super::output::{field, note};
use anyhow::{Result, bail};
use clap::Args;
use std::io::{IsTerminal, stdin};
use wharf_client::Client;

/// Delete instances and their data
#[derive(Args)]
pub struct Remove {
    /// Names or UUIDs of instances
    #[arg(required = true, add = names::instances())]
    names: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Remove {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        if !self.yes {
            confirm(&client, &self.names).await?;
        }
        for name in &self.names {
            client.delete_instance(name).send().await?;
            note(&format!("{name} is deleted."));
        }
        Ok(())
    }
}

/// Asks for the name of each instance before any is deleted.
async fn confirm(client: &Client, names: &[String]) -> Result<()> {
    if !stdin().is_terminal() {
        let message = "there is no terminal to confirm on; give --yes to delete without asking";
        return Err(Failure::Usage(message.to_owned()).into());
    }
    for given in names {
        let instance = client.get_instance(given).send().await?.into_value();
        let name = field(&instance, "name");
        eprint!("Delete {name} and all its data? Type its name to confirm: ");
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        if answer.trim() != name {
            bail!("{:?} is not {name:?}; nothing is deleted", answer.trim());
        }
    }
    Ok(())
}
