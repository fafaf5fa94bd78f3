//! `wharf recreate`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::lifecycle::waited;
use crate::names;
use crate::output::time;
use crate::remove::confirm_by_name;
use crate::shortage;
use crate::show::instance_as;
use anyhow::Result;
use clap::Args;
use std::io::{IsTerminal as _, stdin};
use wharf_client::types::{RecreateRequest, Recreation};

/// Create an instance again whose host was lost, from a backup or with an empty disk
///
/// Without an option it shows the newest backup and what would be missing, and asks.
#[derive(Args)]
pub struct Recreate {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// UUID of a backup of the instance, or `newest`
    #[arg(long, value_name = "ID", conflicts_with = "empty", add = names::backups())]
    backup: Option<String>,
    /// With an empty disk
    #[arg(long)]
    empty: bool,
    /// Without the volumes that it had
    #[arg(long)]
    without_volumes: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Recreate {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let name = &self.name;
        let mut body = RecreateRequest::new();
        body.backup = self.backup;
        body.volumes = self.without_volumes.then_some(false);
        if body.backup.is_none() && !self.empty {
            if !stdin().is_terminal() {
                let message =
                    "there is no terminal to ask on; give --backup newest, --backup ID or --empty";
                return Err(Failure::Usage(message.to_owned()).into());
            }
            let found = client.get_recreation(name).send().await?.body()?;
            let question = question(name, &found, self.without_volumes);
            confirm_by_name(&question, name, "created")?;
            body.backup = found.backup.map(|backup| backup.id.to_string());
        }
        let request = client.recreate_instance(name, &body);
        let created = waited(&format!("Creating {name} again"), request).await;
        instance_as(
            &self.connection,
            &created.map_err(|error| shortage::of_instance(name, error))?,
        )
    }
}

fn question(name: &str, found: &Recreation, without_volumes: bool) -> String {
    let disk = match &found.backup {
        Some(backup) => format!(
            "{name} comes from its newest backup, of {}.{}",
            time(Some(&backup.created_at)),
            missing(found.missing_s)
        ),
        None => format!("{name} has no backup, and comes with an empty disk."),
    };
    let mut back = String::new();
    let mut lost = found.volumes_lost.clone();
    for volume in &found.volumes {
        match &volume.backup {
            _ if without_volumes => lost.push(volume.name.clone()),
            Some(backup) => back.push_str(&format!(
                " Its volume {} comes from a backup of {}.{}",
                volume.name,
                time(Some(&backup.created_at)),
                missing(volume.missing_s)
            )),
            None => back.push_str(&format!(" It has its volume {} again.", volume.name)),
        }
    }
    let lost = match lost.as_slice() {
        [] => String::new(),
        lost => format!(" It comes without its volumes: {}.", lost.join(", ")),
    };
    format!("{disk}{back}{lost} Create it again?")
}

/// The time between a backup and the loss.
fn missing(seconds: Option<u64>) -> String {
    let words = seconds.map(|seconds| {
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        format!(" The last {hours} h {minutes} min before the loss are missing.")
    });
    words.unwrap_or_default()
}
