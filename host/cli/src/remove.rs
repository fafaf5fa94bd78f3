//! `wharf rm` and `wharf volume rm`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::names;
use crate::output::note;
use anyhow::{Result, bail};
use clap::Args;
use std::io::{IsTerminal, stdin};
use wharf_client::{Client, Error as ClientError};

/// Delete instances and their data; volumes stay
#[derive(Args)]
pub struct Remove {
    /// Names or UUIDs of instances
    #[arg(required = true, add = names::instances())]
    names: Vec<String>,
    #[command(flatten)]
    confirmation: Confirmation,
}

impl Remove {
    pub async fn run(self) -> Result<()> {
        self.confirmation.remove(Kind::Instance, &self.names).await
    }
}

/// The things whose data is lost.
#[derive(Clone, Copy)]
pub enum Kind {
    Instance,
    Volume,
}

impl Kind {
    /// The name and the id of the thing.
    async fn find(self, client: &Client, given: &str) -> Result<(String, String), ClientError> {
        Ok(match self {
            Self::Instance => {
                let instance = client.get_instance(given).fetch().await?;
                (instance.name, instance.uuid.0)
            }
            Self::Volume => {
                let volume = client.get_volume(given).fetch().await?;
                (volume.name, volume.id.0)
            }
        })
    }

    async fn delete(self, client: &Client, id: &str) -> Result<(), ClientError> {
        let deleted = match self {
            Self::Instance => client.delete_instance(id),
            Self::Volume => client.delete_volume(id),
        };
        deleted.send().await.map(drop)
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
        }
    }
}

#[derive(Args)]
pub struct Confirmation {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Confirmation {
    /// Deletes things of a kind, each after its name was typed.
    pub async fn remove(self, kind: Kind, names: &[String]) -> Result<()> {
        let client = self.connection.client()?;
        let mut left = Remaining::default();
        let confirmed = if self.yes {
            names.iter().map(|n| (n.clone(), n.clone())).collect()
        } else {
            confirm(kind, &client, names, &mut left).await?
        };
        for (name, id) in &confirmed {
            match kind.delete(&client, id).await {
                Ok(()) => note(&format!("{name} is deleted.")),
                Err(error) => left.note(name, error)?,
            }
        }
        left.into_result(kind)
    }
}

/// The things that stay, although their deletion was asked for.
#[derive(Default)]
struct Remaining {
    names: Vec<String>,
    /// All of them do not exist.
    are_unknown: bool,
}

impl Remaining {
    /// Says why a thing stays. An error that others would meet too ends the command.
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

    fn into_result(self, kind: Kind) -> Result<()> {
        let names = self.names.join(", ");
        match (names.is_empty(), self.are_unknown) {
            (true, _) => Ok(()),
            (false, true) => {
                let text = format!("there is no {} {names}", kind.noun());
                Err(Failure::NotFound(text).into())
            }
            (false, false) => bail!("not deleted: {names}"),
        }
    }
}

/// Asks for the name of each thing before any is deleted. Returns the names and the ids.
async fn confirm(
    kind: Kind,
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
        let (name, id) = match kind.find(client, given).await {
            Ok(found) => found,
            Err(error) => {
                left.note(given, error)?;
                continue;
            }
        };
        eprint!("Delete {name} and all its data? Type its name to confirm: ");
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        if answer.trim() != name {
            bail!("{:?} is not {name:?}; nothing is deleted", answer.trim());
        }
        confirmed.push((name, id));
    }
    Ok(confirmed)
}
