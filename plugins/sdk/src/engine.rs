//! Requests to the node's engine: a driver names them, and the host writes them.

#[cfg(target_family = "wasm")]
use crate::bindings::node_driver::wharf::plugin::engine;
use crate::types::{EngineError, Error, Header, JobState, Request, Response, Written};
use serde::de::DeserializeOwned;

/// The engine of a driver's node. [`HostEngine`] is the real one; tests supply their own.
pub trait Engine {
    /// Sends one request and reads the complete answer.
    ///
    /// # Errors
    /// Those of the interface. After a timeout or a broken connection, the engine may have done the
    /// work.
    fn send(&self, request: &Request) -> Result<Response, EngineError>;

    /// Writes a request as `send` would send it, and does not send it.
    ///
    /// # Errors
    /// When the host refuses the request.
    fn show(&self, request: &Request) -> Result<Written, EngineError>;

    /// Starts a long request in the host, or reports its state.
    ///
    /// # Errors
    /// When the host cannot accept the job.
    fn job(&self, request: &Request) -> Result<JobState, EngineError>;

    /// Begins a transfer for the call's instance.
    ///
    /// # Errors
    /// When the host cannot accept the transfer.
    fn begin_transfer(&self, request: &Request) -> Result<(), EngineError>;

    /// Reports the state of the transfer of the call's instance, if there is one.
    ///
    /// # Errors
    /// In a call without an instance.
    fn transfer_state(&self) -> Result<Option<JobState>, EngineError>;

    /// Ends the transfer of the call's instance, if there is one.
    ///
    /// # Errors
    /// In a call without an instance.
    fn end_transfer(&self) -> Result<(), EngineError>;
}

/// The engine behind the host's import.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostEngine;

#[cfg(target_family = "wasm")]
impl Engine for HostEngine {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        engine::send(request)
    }

    fn show(&self, request: &Request) -> Result<Written, EngineError> {
        engine::show(request)
    }

    fn job(&self, request: &Request) -> Result<JobState, EngineError> {
        engine::job(request)
    }

    fn begin_transfer(&self, request: &Request) -> Result<(), EngineError> {
        engine::begin_transfer(request)
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        engine::transfer_state()
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        engine::end_transfer()
    }
}

/// Outside a host, every request fails.
#[cfg(not(target_family = "wasm"))]
impl Engine for HostEngine {
    fn send(&self, _: &Request) -> Result<Response, EngineError> {
        Err(no_host())
    }

    fn show(&self, _: &Request) -> Result<Written, EngineError> {
        Err(no_host())
    }

    fn job(&self, _: &Request) -> Result<JobState, EngineError> {
        Err(no_host())
    }

    fn begin_transfer(&self, _: &Request) -> Result<(), EngineError> {
        Err(no_host())
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Err(no_host())
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        Err(no_host())
    }
}

#[cfg(not(target_family = "wasm"))]
fn no_host() -> EngineError {
    EngineError::Unreachable("not running in a host".into())
}

/// A request to the engine, built step by step.
///
/// ```ignore
/// NamedRequest::new("stop").with("grace", grace_seconds).timeout_ms(20_000).send(engine)?
/// ```
#[derive(Debug, Clone)]
pub struct NamedRequest(Request);

impl NamedRequest {
    /// Creates the request with this name, without arguments.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Request {
            name: name.to_owned(),
            arguments: Vec::new(),
            timeout_ms: None,
        })
    }

    /// Adds an argument.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.arguments.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds an argument, if there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a flag, if it is true.
    #[must_use]
    pub fn flag(self, name: &str, value: bool) -> Self {
        self.with_some(name, value.then_some(true))
    }

    /// Sets a time limit in place of the 10 seconds of the interface.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u32) -> Self {
        self.0.timeout_ms = Some(ms);
        self
    }

    /// Sends the request. Every status counts as an answer.
    ///
    /// # Errors
    /// When there is no answer; see [`Engine::send`].
    pub fn send(&self, engine: &dyn Engine) -> Result<EngineAnswer, EngineError> {
        engine.send(&self.0).map(EngineAnswer::new)
    }

    /// Writes the request as the host would send it.
    ///
    /// # Errors
    /// When the host refuses the request.
    pub fn show(&self, engine: &dyn Engine) -> Result<Written, EngineError> {
        engine.show(&self.0)
    }

    /// Starts the request as a job, or reports the job's state.
    ///
    /// # Errors
    /// When the host cannot accept the job, or the job failed.
    pub fn job(&self, engine: &dyn Engine) -> Result<Job, EngineError> {
        Job::new(engine.job(&self.0)?)
    }

    /// Begins the transfer with this name.
    ///
    /// # Errors
    /// When the host cannot accept the transfer.
    pub fn begin_transfer(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        engine.begin_transfer(&self.0)
    }

    /// Begins the transfer with this name, or asks for another call after this delay.
    ///
    /// # Errors
    /// [`Error::RetryLater`] if the host has no room for a transfer, or the other end is not there;
    /// nothing was sent. Any other error of [`begin_transfer`](Self::begin_transfer) as its [`Error`].
    pub fn transfer(&self, engine: &dyn Engine, again_ms: u32) -> Result<(), Error> {
        self.begin_transfer(engine).map_err(|error| match error {
            EngineError::Unreachable(_) => Error::RetryLater(again_ms),
            other => other.into(),
        })
    }
}

impl Written {
    /// Parses the body as JSON; null if there is none.
    ///
    /// # Errors
    /// [`Error::Other`] if the body does not match `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(self.body.as_deref().unwrap_or("null"))
            .map_err(|problem| Error::Other(format!("the written request: {problem}")))
    }
}

/// The state of a job.
#[derive(Debug, Clone)]
pub enum Job {
    /// In progress, with the last line from the engine.
    Running(Option<String>),
    /// Ended, with the end of the body.
    Done(EngineAnswer),
}

impl Job {
    fn new(state: JobState) -> Result<Self, EngineError> {
        Ok(match state {
            JobState::Running(line) => Self::Running(line),
            JobState::Done(response) => Self::Done(EngineAnswer::new(response)),
            JobState::Failed(error) => return Err(error),
        })
    }
}

/// The state of the transfer of the call.
#[derive(Debug)]
pub enum Moving<R> {
    /// There is no transfer.
    Nothing,
    /// In progress, with its progress if known.
    Under(Option<String>),
    /// The transfer has ended, and the engine has answered this.
    Ended(R),
}

impl<R> Moving<R> {
    /// Reads the state; `read` interprets the engine's answer.
    ///
    /// # Errors
    /// When the transfer failed without an answer, and in a call without an instance.
    pub fn state(engine: &dyn Engine, read: impl FnOnce(EngineAnswer) -> R) -> Result<Self, Error> {
        Ok(match engine.transfer_state()?.map(Job::new).transpose()? {
            None => Self::Nothing,
            Some(Job::Running(line)) => Self::Under(line),
            Some(Job::Done(answer)) => Self::Ended(read(answer)),
        })
    }
}

/// An engine's answer.
#[derive(Debug, Clone)]
pub struct EngineAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, unchanged.
    pub headers: Vec<Header>,
    /// The body, unchanged.
    pub body: Vec<u8>,
}

impl EngineAnswer {
    fn new(response: Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers,
            body: response.body,
        }
    }

    /// Returns the first header with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }

    /// Returns whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] with the place in the body that does not match `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|problem| Error::Other(format!("the engine's answer: {problem}")))
    }
}
