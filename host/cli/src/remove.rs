//! `wharf rm`, and the removal of volumes and snapshots.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::names;
use crate::output::note;
use crate::snapshot;
use anyhow::{Error, Result, bail};
use clap::Args;
use std::io::{IsTerminal, stdin};
use wharf_client::{Client, Error as ClientError};

/// Delete instances with their data and snapshots; volumes and clones stay
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
        self.confirmation
            .remove(RemovedKind::Instance, &self.names)
            .await
    }
}

/// The things whose data is lost.
#[derive(Clone, Copy)]
pub enum RemovedKind {
    Instance,
    Volume,
    Snapshot,
}

/// A thing to delete.
struct Found {
    name: String,
    id: String,
    /// The data that is lost with it.
    data: String,
}

impl RemovedKind {
    async fn find(self, client: &Client, given: &str) -> Result<Found> {
        let all = " and all its data".to_owned();
        let (name, id, data) = match self {
            Self::Instance => {
                let instance = client.get_instance(given).fetch().await?;
                let of = Some(instance.uuid.as_str());
                let snapshots = client.list_snapshots(of, None, None).fetch().await?;
                let data = match snapshots.len() {
                    0 => all,
                    1 => ", all its data and its snapshot".to_owned(),
                    many => format!(", all its data and its {many} snapshots"),
                };
                (instance.name, instance.uuid.0, data)
            }
            Self::Volume => {
                let volume = client.get_volume(given).fetch().await?;
                (volume.name, volume.id.0, all)
            }
            Self::Snapshot => {
                let found = snapshot::find(client, given).await?;
                (snapshot::named(&found), found.id.0, all)
            }
        };
        Ok(Found { name, id, data })
    }

    async fn delete(self, client: &Client, id: &str) -> Result<()> {
        let deleted = match self {
            Self::Instance => client.delete_instance(id),
            Self::Volume => client.delete_volume(id),
            Self::Snapshot => client.delete_snapshot(&snapshot::id_of(client, id).await?),
        };
        Ok(deleted.send().await.map(drop)?)
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
        }
    }
}

#[derive(Args)]
pub struct Confirmation {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    pub connection: Connection,
}

/// Asks for a name.
pub fn confirm_by_name(question: &str, name: &str, done: &str) -> Result<()> {
    eprint!("{question} Type its name to confirm: ");
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    if answer.trim() != name {
        bail!("{:?} is not {name:?}; nothing is {done}", answer.trim());
    }
    Ok(())
}

impl Confirmation {
    /// Asks for a name, unless it is told not to.
    pub fn ask(&self, question: &str, name: &str, done: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            let message = "there is no terminal to confirm on; give --yes to go on without asking";
            return Err(Failure::Usage(message.to_owned()).into());
        }
        confirm_by_name(question, name, done)
    }

    /// Deletes things of a kind, each after its name was typed.
    pub async fn remove(self, kind: RemovedKind, names: &[String]) -> Result<()> {
        let client = self.connection.client()?;
        let mut left = Remaining::default();
        let confirmed = if self.yes {
            names.iter().map(|n| (n.clone(), n.clone())).collect()
        } else {
            self.confirm(kind, &client, names, &mut left).await?
        };
        for (name, id) in &confirmed {
            match kind.delete(&client, id).await {
                Ok(()) => note(&format!("{name} is deleted.")),
                Err(error) => left.note(name, error)?,
            }
        }
        left.into_result(kind)
    }

    /// Asks for the name of each thing before any is deleted. Returns the names and the ids.
    async fn confirm(
        &self,
        kind: RemovedKind,
        client: &Client,
        names: &[String],
        left: &mut Remaining,
    ) -> Result<Vec<(String, String)>> {
        let mut confirmed = Vec::new();
        for given in names {
            let Found { name, id, data } = match kind.find(client, given).await {
                Ok(found) => found,
                Err(error) => {
                    left.note(given, error)?;
                    continue;
                }
            };
            self.ask(&format!("Delete {name}{data}?"), &name, "deleted")?;
            confirmed.push((name, id));
        }
        Ok(confirmed)
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
    fn note(&mut self, name: &str, error: Error) -> Result<()> {
        let is_unknown = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ClientError::Refused(refusal)), _) if refusal.status != 401 => {
                refusal.status == 404
            }
            (_, Some(Failure::NotFound(_))) => true,
            _ => return Err(error),
        };
        self.are_unknown = is_unknown && (self.are_unknown || self.names.is_empty());
        self.names.push(name.to_owned());
        note(&format!("{name}: {error}"));
        Ok(())
    }

    fn into_result(self, kind: RemovedKind) -> Result<()> {
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
