//! `wharf events`: the events of the user.

use crate::connection::Connection;
use crate::output::{OutputFormat, json, line, note, or_none, time};
use crate::{block_on, names};
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::time::Duration;
use wharf_client::types::{Event, EventList};
use wharf_client::{Client, Error as ClientError, Method, Reply, Request};

const RESET: &str = "Some events are older than the server keeps, and are left out.";
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The arguments of `wharf events`, which operators have too.
#[derive(Args)]
pub struct UserEvents {
    /// Name or UUID of an instance; default: all of yours
    #[arg(add = names::instances())]
    pub instance: Option<String>,
    /// Show events as they happen, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Show events after the one with this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    #[command(flatten)]
    connection: Connection,
}

impl UserEvents {
    /// The format of the output.
    pub fn output(&self) -> OutputFormat {
        self.connection.output
    }

    /// Prints the user's events; with `--follow`, until Ctrl-C.
    pub fn run(self) -> Result<()> {
        block_on(async {
            let client = self.connection.client()?;
            if self.follow {
                self.stream(&client).await
            } else {
                self.list(&client).await
            }
        })
    }

    async fn list(&self, client: &Client) -> Result<()> {
        let first = client.list_events(None, self.after, self.instance.as_deref(), None);
        if self.connection.is_json() {
            let mut events = Vec::new();
            let collected = each_page(client, first, |page| {
                events.extend(page.value().as_array().cloned().unwrap_or_default());
                Ok(())
            });
            collected.await?;
            return json(&events);
        }
        let print = |page: &Reply<EventList>| page.body()?.iter().try_for_each(show);
        each_page(client, first, print).await
    }

    /// Prints events as they happen. A lost connection is continued after the last event.
    async fn stream(&self, client: &Client) -> Result<()> {
        let mut after = self.after;
        let mut pause = FIRST_PAUSE;
        let mut is_first = true;
        loop {
            let events = client.list_events(None, None, self.instance.as_deref(), None);
            let mut stream = match events.stream(after).await {
                Ok(stream) => stream,
                Err(error) if !is_first && is_temporary(&error) => {
                    note(&format!("{error}; trying again in {} s", pause.as_secs()));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            (is_first, pause) = (false, FIRST_PAUSE);
            while let Ok(Some(message)) = stream.next().await {
                after = message.id.or(after);
                match message.event.as_str() {
                    "event" if self.connection.is_json() => {
                        let event: Value = serde_json::from_str(&message.data)?;
                        line(&event.to_string())?;
                    }
                    "event" => show(&serde_json::from_str(&message.data)?)?,
                    "reset" => note(RESET),
                    _ => {}
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// Reads a list of events page by page.
pub async fn each_page(
    client: &Client,
    first: Request<'_, EventList>,
    mut read: impl FnMut(&Reply<EventList>) -> Result<()>,
) -> Result<()> {
    let mut page = first.send().await?;
    loop {
        read(&page)?;
        let Some(next) = page.next() else {
            return Ok(());
        };
        page = client.request(Method::GET, next).send().await?;
    }
}

/// Whether a later attempt may succeed: the server restarts, or has too many streams or terminals.
pub fn is_temporary(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable(_) | ClientError::TimedOut(_) => true,
        ClientError::Refused(refusal) => [429, 503].contains(&refusal.status),
        _ => false,
    }
}

fn show(event: &Event) -> Result<()> {
    if event.type_ == "reset" {
        note(RESET);
        return Ok(());
    }
    let text = format!(
        "{}  {}  {}  {}  {}",
        time(event.at.as_ref()),
        or_none(event.name.as_ref()),
        event.type_,
        or_none(event.state.as_ref()),
        or_none(event.message.as_ref())
    );
    line(&text.replace(char::is_control, " "))
}
