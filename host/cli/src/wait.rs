//! `wharf wait`.

use crate::connection::InstanceArgs;
use crate::events::each_page;
use crate::failure::Failure;
use crate::output::{note, or_none, progress};
use crate::show::instance_as;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};
use wharf_client::types::{Instance, State};
use wharf_client::{Client, Error as ClientError, Reply};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Wait until an instance is in a state
#[derive(Args)]
pub struct Wait {
    /// The state
    #[arg(long = "for", value_enum, default_value_t)]
    state: AwaitedState,
    #[command(flatten)]
    limit: WaitLimit,
    #[command(flatten)]
    of: InstanceArgs,
}

#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub enum AwaitedState {
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
pub struct WaitLimit {
    /// Longest wait in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

impl AwaitedState {
    fn is(self, state: &State) -> bool {
        match self {
            Self::Running => *state == State::Running,
            Self::Stopped => [State::ShutOff, State::Exited].contains(state),
            Self::Error => *state == State::Error,
            Self::Deleted => *state == State::Deleted,
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
        let InstanceArgs { name, connection } = &self.of;
        let client = connection.client()?;
        match wait_for(&client, name, name, self.state, self.limit).await? {
            Some(instance) => instance_as(connection, &instance),
            None => Ok(()),
        }
    }
}

/// Waits for a state of the instance with this name and this id, which may be the name. Returns the
/// instance; none if it is deleted, as awaited.
pub async fn wait_for(
    client: &Client,
    name: &str,
    id: &str,
    awaited: AwaitedState,
    limit: WaitLimit,
) -> Result<Option<Reply<Instance>>> {
    let bar = progress(&format!("Waiting until {name} is {}", awaited.name()));
    let waited = poll(client, name, id, awaited, limit, &bar).await;
    bar.finish_and_clear();
    waited
}

/// The events of an instance, which tell whether its content moves to a larger disk. The state is `running`
/// then.
#[derive(Default)]
struct DiskMoves {
    last: Option<u64>,
    message: Option<String>,
}

impl DiskMoves {
    /// Reads the events since the last look. Returns the words of the newest one, if the content moves.
    async fn look(&mut self, client: &Client, id: &str) -> Result<Option<&str>> {
        let first = client.list_events(None, self.last, Some(id), None);
        each_page(client, first, |page| {
            if let Some(event) = page.body()?.0.pop() {
                self.last = Some(event.id);
                let grows = event.type_ == "disk-growing";
                self.message = grows.then(|| or_none(event.message));
            }
            Ok(())
        })
        .await?;
        Ok(self.message.as_deref())
    }
}

/// Looks at `id` first, a name or a UUID, and then at its UUID: another instance may get the name.
async fn poll(
    client: &Client,
    name: &str,
    id: &str,
    awaited: AwaitedState,
    limit: WaitLimit,
    bar: &ProgressBar,
) -> Result<Option<Reply<Instance>>> {
    let (begin, limit) = (Instant::now(), Duration::from_secs(limit.timeout));
    let mut pause = FIRST_PAUSE;
    let mut state = "unknown".to_owned();
    let mut id = id.to_owned();
    let (mut moves, mut message) = (DiskMoves::default(), None::<String>);
    loop {
        match client.get_instance(&id).send().await {
            Ok(reply) => {
                let instance = reply.body()?;
                id = instance.uuid.0;
                state = instance.state.to_string();
                if awaited.is(&instance.state) {
                    let moves = match awaited {
                        AwaitedState::Running => moves.look(client, &id).await?,
                        _ => None,
                    };
                    let Some(moves) = moves else {
                        return Ok(Some(reply));
                    };
                    if bar.is_hidden() && message.as_deref() != Some(moves) {
                        note(moves);
                    }
                    bar.set_message(moves.to_owned());
                    message = Some(moves.to_owned());
                    "running, and cannot be reached yet".clone_into(&mut state);
                }
                // An instance in error changes only if its user restarts or deletes it.
                if instance.state == State::Error && awaited == AwaitedState::Running {
                    bail!("{name} is in error; `wharf events {name}` shows the reason");
                }
            }
            Err(ClientError::Refused(refusal))
                if refusal.status == 404 && awaited == AwaitedState::Deleted =>
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
