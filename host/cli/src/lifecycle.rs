//! `wharf stop`, `restart` and `port`.

use crate::connection::{Connection, InstanceArgs};
use crate::output::{line, progress};
use crate::shortage;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use std::fmt::Display;
use wharf_client::types::{
    self, ActionResultOrState, ChangedInstance, PortRequest, PortsResultOrState,
};
use wharf_client::{Reply, Request};

pub async fn stop(InstanceArgs { name, connection }: &InstanceArgs) -> Result<()> {
    let client = connection.client()?;
    let stopped = waited(&format!("Stopping {name}"), client.stop_instance(name)).await?;
    connection.print(&stopped, |stopped| line(&action(stopped)))
}

pub async fn restart(InstanceArgs { name, connection }: &InstanceArgs) -> Result<()> {
    let client = connection.client()?;
    let started = waited(&format!("Starting {name}"), client.restart_instance(name)).await;
    let started = started.map_err(|error| shortage::of_instance(name, error))?;
    connection.print(&started, |started| line(&action(started)))
}

#[derive(Subcommand)]
pub enum Port {
    /// Open a port
    Add(PortChange),
    /// Close a port
    Rm(PortChange),
}

#[derive(Args)]
pub struct PortChange {
    /// Name or UUID of the instance
    #[arg(add = crate::names::instances())]
    name: String,
    /// The port, 1 to 65535
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    connection: Connection,
}

impl Port {
    pub async fn run(self) -> Result<()> {
        let (Self::Add(change) | Self::Rm(change)) = &self;
        let client = change.connection.client()?;
        let body = PortRequest::new(types::Port(change.port));
        let request = match &self {
            Self::Add(_) => client.add_port(&change.name, &body),
            Self::Rm(_) => client.remove_port(&change.name, &body),
        };
        let changed = waited(&format!("Changing the ports of {}", change.name), request).await?;
        change.connection.print(&changed, |changed| match changed {
            PortsResultOrState::PortsResult(result) => line(&result.message),
            PortsResultOrState::ChangedInstance(changed) => line(&state_of(&changed)),
        })
    }
}

/// Sends a request, and shows that the command waits.
pub async fn waited<T>(text: &str, request: Request<'_, T>) -> Result<Reply<T>>
where
    T: DeserializeOwned,
{
    let bar = progress(text);
    let sent = request.send().await;
    bar.finish_and_clear();
    Ok(sent?)
}

fn action(result: ActionResultOrState) -> String {
    match result {
        ActionResultOrState::ActionResult(result) => result.message,
        ActionResultOrState::ChangedInstance(changed) => state_of(&changed),
    }
}

/// The line for a key without the scope `read`, which sees no message.
pub fn state_of(changed: &ChangedInstance) -> String {
    is_in("Instance", &changed.uuid, &changed.state)
}

/// The line for a key without the scope `read`, about a thing that it has changed.
pub fn is_in(kind: &str, id: &types::Uuid, state: &impl Display) -> String {
    format!("{kind} {} is {state}.", **id)
}
