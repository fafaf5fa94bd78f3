//! `wharf port`.

use super::connection::Connection;
use super::lifecycle::perform;
use super::names;
use anyhow::Result;
use clap::{Args, Subcommand};
use wharf_client::types::PortRequest;

/// Open and close ports of a virtual machine
#[derive(Args)]
pub struct Port {
    #[command(subcommand)]
    command: PortCommand,
}

#[derive(Subcommand)]
enum PortCommand {
    /// Open a port
    Add(Change),
    /// Close a port
    Rm(Change),
}

#[derive(Args)]
struct Change {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// The port, 1 to 65535
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    connection: Connection,
}

impl Port {
    pub async fn run(self) -> Result<()> {
        let (is_add, change) = match self.command {
            PortCommand::Add(change) => (true, change),
            PortCommand::Rm(change) => (false, change),
        };
        let client = change.connection.client()?;
        let body = PortRequest::new(change.port.into());
        let request = match is_add {
            true => client.add_port(&change.name, &body),
            false => client.remove_port(&change.name, &body),
        };
        let text = format!("Changing the ports of {}", change.name);
        perform(&change.connection, &text, request).await
    }
}
