//! `wharf resize` and `wharf rename`.

use crate::connection::{Connection, InstanceArgs};
use crate::lifecycle::waited;
use crate::names;
use crate::shortage;
use crate::show::instance_as;
use anyhow::Result;
use clap::Args;
use wharf_client::types::UpdateRequest;

/// Change the size of a container
#[derive(Args)]
pub struct Resize {
    #[command(flatten)]
    size: NewSize,
    #[command(flatten)]
    of: InstanceArgs,
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
        let InstanceArgs { name, connection } = &self.of;
        let done = update(connection, name, &body).await;
        done.map_err(|error| shortage::of_instance(name, error))
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
