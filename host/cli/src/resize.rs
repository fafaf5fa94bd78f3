//! `wharf resize` and `wharf rename`.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::lifecycle::waited;
use crate::names;
use crate::show::instance_as;
use anyhow::{Error, Result};
use clap::Args;
use wharf_client::{Error as ClientError, Shortage, types::UpdateRequest};

/// Change the size of a container
#[derive(Args)]
pub struct Resize {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    #[command(flatten)]
    size: NewSize,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct NewSize {
    /// vCPUs
    #[arg(long, value_name = "NUMBER")]
    vcpus: Option<u64>,
    /// RAM in GiB
    #[arg(long, value_name = "GIB")]
    mem: Option<u64>,
    /// Disk in GiB, which can only grow
    #[arg(long, value_name = "GIB")]
    disk: Option<u64>,
}

/// Give an instance another name
#[derive(Args)]
pub struct Rename {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// The new name
    new_name: String,
    #[command(flatten)]
    connection: Connection,
}

impl Resize {
    pub async fn run(self) -> Result<()> {
        let mut body = UpdateRequest::new();
        body.n_vcpus = self.size.vcpus;
        body.mem_gib = self.size.mem;
        body.disk_size_gib = self.size.disk;
        let done = update(&self.connection, &self.name, &body).await;
        done.map_err(|error| shortage_of(&self.name, error))
    }
}

impl Rename {
    pub async fn run(self) -> Result<()> {
        let mut body = UpdateRequest::new();
        body.name = Some(self.new_name);
        update(&self.connection, &self.name, &body).await
    }
}

async fn update(connection: &Connection, name: &str, body: &UpdateRequest) -> Result<()> {
    let client = connection.client()?;
    let request = client.update_instance(name, body);
    instance_as(
        connection,
        &waited(&format!("Changing {name}"), request).await?,
    )
}

/// The smallest amounts that an instance can have, and the options that set them.
const SIZES: [(&str, &str, u64); 3] = [
    ("n_vcpus", "--vcpus", 1),
    ("mem_gib", "--mem", 1),
    ("disk_size_gib", "--disk", 10),
];

/// Options with the amounts that are available; none if no instance fits them.
pub fn options_that_fit(shortage: &Shortage) -> Option<Vec<(&'static str, u64)>> {
    let available = &shortage.nearest_available;
    let known = |field: &String| SIZES.iter().find(|(name, ..)| name == field);
    let mut options = Vec::new();
    for field in shortage
        .bottleneck
        .iter()
        .filter(|field| *field != "n_gpus")
    {
        let (name, option, minimum) = known(field)?;
        let amount = available.get(*name).filter(|amount| *amount >= minimum)?;
        options.push((*option, *amount));
    }
    Some(options)
}

/// The message of a shortage, with the amounts.
pub fn shortage_message(shortage: &Shortage, command: Option<&str>) -> String {
    // No amount would do.
    if shortage.bottleneck == ["flavor"] {
        return format!("{} `wharf flavors` lists the others.", shortage.message);
    }
    let amounts = shortage.bottleneck.iter().map(|field| {
        let of = |amounts: &std::collections::BTreeMap<String, u64>| {
            amounts.get(field).map_or("-".to_owned(), u64::to_string)
        };
        let (requested, available) = (of(&shortage.requested), of(&shortage.nearest_available));
        format!("\n  {field}: requested {requested}, available {available}")
    });
    let amounts: String = amounts.collect();
    let command = command.map_or(String::new(), |command| {
        format!("\nThis would fit: {command}")
    });
    format!("{}{amounts}{command}", shortage.message)
}

/// Adds the command that would succeed to the shortage of an existing instance.
pub fn shortage_of(name: &str, error: Error) -> Error {
    let shortage = error
        .downcast_ref::<ClientError>()
        .and_then(ClientError::refusal)
        .and_then(|refusal| refusal.shortage.as_ref());
    let Some(shortage) = shortage else {
        return error;
    };
    let options = options_that_fit(shortage).filter(|options| !options.is_empty());
    let command = options.map(|options| {
        let options = options
            .iter()
            .map(|(option, amount)| format!(" {option} {amount}"));
        format!("wharf resize {name}{}", options.collect::<String>())
    });
    let message = shortage_message(shortage, command.as_deref());
    match error.downcast::<ClientError>() {
        Ok(source) => Failure::Insufficient { message, source }.into(),
        Err(error) => error,
    }
}
