//! `wharf stop`, `wharf restart` and `wharf recreate`.

use super::connection::Connection;
use super::names;
use super::output::{field, json, line, progress};
use super::resize::shortage_of;
use super::show::instance_as;
use anyhow::Result;
use clap::Args;
use wharf_client::{Reply, Request};

/// Stop a running instance; its disk stays
#[derive(Args)]
pub struct Stop {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

/// Start a stopped instance again
#[derive(Args)]
pub struct Restart {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

/// Create an instance again whose host was lost, with an empty disk
#[derive(Args)]
pub struct Recreate {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

impl Recreate {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let bar = progress(&format!("Creating {} again", self.name));
        let sent = client.recreate_instance(&self.name).send().await;
        bar.finish_and_clear();
        let sent = sent.map_err(|error| shortage_of(&self.name, error.into()))?;
        instance_as(&self.connection, sent.value())
    }
}

impl Stop {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let request = client.stop_instance(&self.name);
        perform(
            &self.connection,
            &format!("Stopping {}", self.name),
            request,
        )
        .await
    }
}

impl Restart {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let request = client.restart_instance(&self.name);
        let text = format!("Starting {}", self.name);
        let done = perform(&self.connection, &text, request).await;
        done.map_err(|error| shortage_of(&self.name, error))
    }
}

/// Sends a request whose answer has a message, and prints that.
pub async fn perform<T>(
    connection: &Connection,
    text: &str,
    request: Request<'_, T>,
) -> Result<()> {
    let bar = progress(text);
    let sent: Result<Reply<T>, _> = request.send().await;
    bar.finish_and_clear();
    let value = sent?.into_value();
    match connection.is_json() {
        true => json(&value),
        // A key without the scope `read` sees no message.
        false if value.get("message").is_none() => {
            let [uuid, state] = ["uuid", "state"].map(|name| field(&value, name));
            line(&format!("Instance {uuid} is {state}."))
        }
        false => line(&field(&value, "message")),
    }
}
