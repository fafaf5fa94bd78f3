//! `wharf rm`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::names;
use crate::output::note;
use anyhow::{Result, bail};
use clap::Args;
use std::io::{IsTerminal, stdin};
use wharf_client::{Client, Error as ClientError};

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
        let mut left = Remaining::default();
        let instances = if self.yes {
            self.names.iter().map(|n| (n.clone(), n.clone())).collect()
        } else {
            confirm(&client, &self.names, &mut left).await?
        };
        for (name, id) in &instances {
            match client.delete_instance(id).send().await {
                Ok(_) => note(&format!("{name} is deleted.")),
                Err(error) => left.note(name, error)?,
            }
        }
        left.into_result()
    }
}

/// The instances that stay, although their deletion was asked for.
#[derive(Default)]
struct Remaining {
    names: Vec<String>,
    /// All of them do not exist.
    are_unknown: bool,
}

impl Remaining {
    /// Says why an instance stays. An error that others would meet too ends the command.
    fn note(&mut self, name: &str, error: ClientError) -> Result<()> {
        match error {
            ClientError::Refused(refusal) if refusal.status != 401 => {
                let is_unknown = refusal.status == 404;
                self.are_unknown = is_unknown && (self.are_unknown || self.names.is_empty());
                self.names.push(name.to_owned());
                note(&format!("{name}: {refusal}"));
                Ok(())
            }
            error => Err(error.into()),
        }
    }

    fn into_result(self) -> Result<()> {
        let names = self.names.join(", ");
        match (names.is_empty(), self.are_unknown) {
            (true, _) => Ok(()),
            (false, true) => Err(Failure::NotFound(format!("there is no instance {names}")).into()),
            (false, false) => bail!("not deleted: {names}"),
        }
    }
}

/// Asks for the name of each instance before any is deleted. Returns the names and the ids.
async fn confirm(
    client: &Client,
    names: &[String],
    left: &mut Remaining,
) -> Result<Vec<(String, String)>> {
    if !stdin().is_terminal() {
        let message = "there is no terminal to confirm on; give --yes to delete without asking";
        return Err(Failure::Usage(message.to_owned()).into());
    }
    let mut confirmed = Vec::new();
    for given in names {
        let instance = match client.get_instance(given).fetch().await {
            Ok(instance) => instance,
            Err(error) => {
                left.note(given, error)?;
                continue;
            }
        };
        let name = instance.name;
        eprint!("Delete {name} and all its data? Type its name to confirm: ");
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        if answer.trim() != name {
            bail!("{:?} is not {name:?}; nothing is deleted", answer.trim());
        }
        confirmed.push((name, instance.uuid.0));
    }
    Ok(confirmed)
}
