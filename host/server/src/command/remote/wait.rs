//! `wharf wait`.

use super::connection::Connection;
use super::failure::Failure;
use super::names;
use super::output::{field, note, progress};
use super::show::instance_as;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::Value;
use std::time::{Duration, Instant};
use wharf_client::{Client, Error as ClientError, Method};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Wait until an instance is in a state
#[derive(Args)]
pub struct Wait {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// The state
    #[arg(long = "for", value_enum, default_value_t)]
    state: Awaited,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    connection: Connection,
}

#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub enum Awaited {
    /// Ready for its user
    #[default]
    Running,
    /// Stopped, a container or a virtual machine
    Stopped,
    /// Failed
    Error,
    /// Deleted
    Deleted,
}

#[derive(Args, Clone, Copy)]
pub struct Limit {
    /// Longest wait in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

impl Awaited {
    fn is(self, state: &str) -> bool {
        match self {
            Self::Running => state == "running",
            Self::Stopped => ["shut_off", "exited"].contains(&state),
            Self::Error => state == "error",
            Self::Deleted => state == "deleted",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Error => "in error",
            Self::Deleted => "deleted",
        }
    }
}

impl Wait {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let named = (self.name.as_str(), self.name.as_str());
        match wait_for(&client, named, self.state, self.limit).await? {
            Some(instance) => instance_as(&self.connection, &instance),
            None => Ok(()),
        }
    }
}

/// Waits for a state of the instance with this name and this id, which may be the name. Returns the
/// instance; none if it is deleted, as awaited.
pub async fn wait_for(
    client: &Client,
    (name, id): (&str, &str),
    awaited: Awaited,
    limit: Limit,
) -> Result<Option<Value>> {
    let bar = progress(&format!("Waiting until {name} is {}", awaited.name()));
    let waited = poll(client, (name, id), awaited, limit, &bar).await;
    bar.finish_and_clear();
    waited
}

/// The events of an instance, which tell whether its content moves to a larger disk. The state is `running`
/// then.
#[derive(Default)]
struct Moves {
    last: Option<u64>,
    message: Option<String>,
}

impl Moves {
    /// Reads the events since the last look. Returns the words of the newest one, if the content moves.
    async fn look(&mut self, client: &Client, id: &str) -> Result<Option<&str>> {
        let first = client.list_events(None, self.last, Some(id), None);
        let mut page = first.send().await?;
        loop {
            for event in page.value().as_array().into_iter().flatten() {
                self.last = event.get("id").and_then(Value::as_u64).or(self.last);
                let grows = event.get("type").and_then(Value::as_str) == Some("disk-growing");
                self.message = grows.then(|| field(event, "message"));
            }
            let Some(next) = page.next().map(str::to_owned) else {
                return Ok(self.message.as_deref());
            };
            page = client.request(Method::GET, &next).send().await?;
        }
    }
}

/// Looks at `id` first, a name or a UUID, and then at its UUID: another instance may get the name.
async fn poll(
    client: &Client,
    (name, id): (&str, &str),
    awaited: Awaited,
    limit: Limit,
    bar: &ProgressBar,
) -> Result<Option<Value>> {
    let (begin, limit) = (Instant::now(), Duration::from_secs(limit.timeout));
    let mut pause = FIRST_PAUSE;
    let mut state = "unknown".to_owned();
    let mut id = id.to_owned();
    let (mut moves, mut message) = (Moves::default(), None::<String>);
    loop {
        match client.get_instance(&id).send().await {
            Ok(reply) => {
                let instance = reply.into_value();
                if let Some(uuid) = instance.get("uuid").and_then(Value::as_str) {
                    uuid.clone_into(&mut id);
                }
                let now = instance.get("state").and_then(Value::as_str);
                now.unwrap_or_default().clone_into(&mut state);
                if awaited.is(&state) {
                    let moves = match awaited {
                        Awaited::Running => moves.look(client, &id).await?,
                        _ => None,
                    };
                    let Some(moves) = moves else {
                        return Ok(Some(instance));
                    };
                    if bar.is_hidden() && message.as_deref() != Some(moves) {
                        note(moves);
                    }
                    bar.set_message(moves.to_owned());
                    message = Some(moves.to_owned());
                    "running, and cannot be reached yet".clone_into(&mut state);
                }
                // An instance in error changes only if its user restarts or deletes it.
                if state == "error" && awaited == Awaited::Running {
                    bail!("{name} is in error; `wharf events {name}` shows the reason");
                }
            }
            Err(ClientError::Refused(refusal))
                if refusal.status == 404 && awaited == Awaited::Deleted =>
            {
                return Ok(None);
            }
            Err(ClientError::Refused(refusal)) if refusal.status == 404 && state != "unknown" => {
                return Err(Failure::NotFound(format!("{name} was deleted")).into());
            }
            // The server may be restarting.
            Err(ClientError::Unreachable(_) | ClientError::TimedOut(_)) if state != "unknown" => {}
            Err(error) => return Err(error.into()),
        }
        if begin.elapsed() + pause > limit {
            let seconds = limit.as_secs();
            let awaited = awaited.name();
            let message =
                format!("{name} is not {awaited} after {seconds} s; its state is {state}");
            return Err(Failure::TimedOut(message).into());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
