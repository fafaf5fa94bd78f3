//! `wharf wait`, and the waits of other commands.

use crate::connection::InstanceArgs;
use crate::events::{each_page, is_temporary};
use crate::failure::Failure;
use crate::output::{note, or_none, progress};
use crate::show::instance_as;
use anyhow::{Error, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};
use wharf_client::types::{Event, Instance, State};
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

/// Of commands that wait until what they began has ended.
#[derive(Args, Clone, Copy)]
pub struct EndWait {
    /// Do not wait for the end
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub limit: WaitLimit,
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
    let mut words = Words::new(&format!("Waiting until {name} is {}", awaited.name()));
    // Another instance may get the name.
    let mut uuid = id.to_owned();
    let mut state = None;
    let mut newest = NewestEvent::new(|_| true);
    until(name, awaited.name(), limit, async || {
        let reply = match client.get_instance(&uuid).send().await {
            Ok(reply) => reply,
            Err(ClientError::Refused(refusal)) if refusal.status == 404 => {
                return match (awaited, &state) {
                    (AwaitedState::Deleted, _) => Ok(Look::Done(None)),
                    (_, Some(_)) => Err(Failure::NotFound(format!("{name} was deleted")).into()),
                    (_, None) => Err(ClientError::Refused(refusal).into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let instance = reply.body()?;
        uuid = instance.uuid.0;
        let now = state.insert(instance.state);
        if awaited.is(now) {
            // The state is `running` while the content moves to a larger disk.
            let moves = match awaited {
                AwaitedState::Running => newest.look(client, &uuid).await?,
                _ => None,
            };
            let Some(moves) = moves.filter(|event| event.type_ == "disk-growing") else {
                return Ok(Look::Done(Some(reply)));
            };
            words.show(&or_none(moves.message.as_ref()));
            return Ok(Look::Not(format!("{now}, and cannot be reached yet")));
        }
        // An instance in error changes only if its user restarts or deletes it.
        if *now == State::Error && awaited == AwaitedState::Running {
            bail!("{name} is in error; `wharf events {name}` shows the reason");
        }
        Ok(Look::Not(now.to_string()))
    })
    .await
}

/// Words that change while a command waits.
pub struct Words {
    bar: ProgressBar,
    shown: Option<String>,
}

impl Words {
    pub fn new(text: &str) -> Self {
        let (bar, shown) = (progress(text), None);
        Self { bar, shown }
    }

    pub fn show(&mut self, text: &str) {
        if self.shown.as_deref() == Some(text) {
            return;
        }
        if self.bar.is_hidden() {
            note(text);
        }
        self.bar.set_message(text.to_owned());
        self.shown = Some(text.to_owned());
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The newest event of an instance among those of some types.
pub struct NewestEvent {
    is_wanted: fn(&str) -> bool,
    last: Option<u64>,
    event: Option<Event>,
}

impl NewestEvent {
    pub fn new(is_wanted: fn(&str) -> bool) -> Self {
        Self {
            is_wanted,
            last: None,
            event: None,
        }
    }

    /// Reads the events since the last look.
    pub async fn look(&mut self, client: &Client, id: &str) -> Result<Option<&Event>> {
        let first = client.list_events(None, self.last, Some(id), None);
        each_page(client, first, |page| {
            let mut events = page.body()?.0;
            self.last = events.last().map(|event| event.id).or(self.last);
            events.retain(|event| (self.is_wanted)(&event.type_));
            self.event = events.pop().or(self.event.take());
            Ok(())
        })
        .await?;
        Ok(self.event.as_ref())
    }
}

/// The result of a look at a thing that a command waits for.
pub enum Look<T> {
    Done(T),
    /// It is in another state.
    Not(String),
}

/// Looks until the awaited state is there, or the limit has passed.
pub async fn until<T>(
    name: &str,
    awaited: &str,
    limit: WaitLimit,
    mut look: impl AsyncFnMut() -> Result<Look<T>>,
) -> Result<T> {
    let (begin, limit) = (Instant::now(), Duration::from_secs(limit.timeout));
    let mut pause = FIRST_PAUSE;
    let mut state = None;
    loop {
        match look().await {
            Ok(Look::Done(found)) => return Ok(found),
            Ok(Look::Not(now)) => state = Some(now),
            // The server may be restarting.
            Err(error) if state.is_some() && is_away(&error) => {}
            Err(error) => return Err(error),
        }
        if begin.elapsed() + pause > limit {
            let (seconds, state) = (limit.as_secs(), or_none(state));
            let message =
                format!("{name} is not {awaited} after {seconds} s; its state is {state}");
            return Err(Failure::TimedOut(message).into());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn is_away(error: &Error) -> bool {
    error.downcast_ref().is_some_and(is_temporary)
}
