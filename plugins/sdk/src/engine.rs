//! Calls to the node's engine.

use crate::Path;
use crate::types::{
    Body, EngineError, Error, File, Header, JobState, Method, Request, Response, Transfer,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The engine of a driver's node. [`HostEngine`] is the real one; tests supply their own.
pub trait Engine {
    /// Sends one request and reads the complete answer.
    ///
    /// # Errors
    /// Those of the `engine` interface. After a timeout or a broken connection, the engine may have
    /// done the work.
    fn send(&self, request: &Request) -> Result<Response, EngineError>;

    /// Starts a long request in the host under a key, or reports its state.
    ///
    /// # Errors
    /// When the host cannot accept the job.
    fn job(&self, key: &str, request: &Request) -> Result<JobState, EngineError>;

    /// Begins the transfer of the call's instance.
    ///
    /// # Errors
    /// When the host cannot accept the transfer.
    fn begin_transfer(&self, _: &Transfer) -> Result<(), EngineError> {
        Err(EngineError::Refused("no transfers".into()))
    }

    /// Reports the state of the transfer of the call's instance, if there is one.
    ///
    /// # Errors
    /// In a call without an instance.
    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Ok(None)
    }

    /// Ends the transfer of the call's instance, if there is one.
    ///
    /// # Errors
    /// In a call without an instance.
    fn end_transfer(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// The engine behind the host's `engine` import.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostEngine;

#[cfg(target_family = "wasm")]
impl Engine for HostEngine {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        crate::bindings::node_driver::wharf::plugin::engine::send(request)
    }

    fn job(&self, key: &str, request: &Request) -> Result<JobState, EngineError> {
        crate::bindings::node_driver::wharf::plugin::engine::job(key, request)
    }

    fn begin_transfer(&self, transfer: &Transfer) -> Result<(), EngineError> {
        crate::bindings::node_driver::wharf::plugin::engine::begin_transfer(transfer)
    }

    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        crate::bindings::node_driver::wharf::plugin::engine::transfer_state()
    }

    fn end_transfer(&self) -> Result<(), EngineError> {
        crate::bindings::node_driver::wharf::plugin::engine::end_transfer()
    }
}

/// Outside a host, every request fails.
#[cfg(not(target_family = "wasm"))]
impl Engine for HostEngine {
    fn send(&self, _: &Request) -> Result<Response, EngineError> {
        Err(EngineError::Unreachable("not running in a host".into()))
    }

    fn job(&self, _: &str, _: &Request) -> Result<JobState, EngineError> {
        Err(EngineError::Unreachable("not running in a host".into()))
    }
}

/// A request to the engine, built step by step.
#[derive(Debug, Clone)]
pub struct Call(Request);

impl Call {
    /// Creates a request without a body.
    #[must_use]
    pub fn new(method: Method, path: &Path) -> Self {
        Self(Request {
            method,
            path: path.to_string(),
            headers: Vec::new(),
            body: Body::Empty,
            timeout_ms: None,
        })
    }

    /// Creates a `GET` request.
    #[must_use]
    pub fn get(path: &Path) -> Self {
        Self::new(Method::Get, path)
    }

    /// Creates a `POST` request.
    #[must_use]
    pub fn post(path: &Path) -> Self {
        Self::new(Method::Post, path)
    }

    /// Creates a `PUT` request.
    #[must_use]
    pub fn put(path: &Path) -> Self {
        Self::new(Method::Put, path)
    }

    /// Creates a `PATCH` request.
    #[must_use]
    pub fn patch(path: &Path) -> Self {
        Self::new(Method::Patch, path)
    }

    /// Creates a `DELETE` request.
    #[must_use]
    pub fn delete(path: &Path) -> Self {
        Self::new(Method::Delete, path)
    }

    /// Sets a JSON body.
    ///
    /// # Errors
    /// [`Error::Other`] if the value has no JSON form, such as a map with keys that are not text.
    pub fn json<T: Serialize>(mut self, body: &T) -> Result<Self, Error> {
        let text = serde_json::to_string(body)
            .map_err(|problem| Error::Other(format!("request body: {problem}")))?;
        self.0.body = Body::Json(text);
        Ok(self)
    }

    /// Sets a tar archive of these files as the body. The host builds it and inserts the secrets.
    #[must_use]
    pub fn archive(mut self, files: &[File]) -> Self {
        self.0.body = Body::Archive(files.to_vec());
        self
    }

    /// Sets one file as the body, with the headers that the policy of the kind of engine gives it. The
    /// host inserts a secret.
    #[must_use]
    pub fn file(mut self, file: &File) -> Self {
        self.0.body = Body::File(file.clone());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0.headers.push(Header {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        self
    }

    /// Sets a time limit in place of the 10 seconds of the `engine` interface.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u32) -> Self {
        self.0.timeout_ms = Some(ms);
        self
    }

    /// Sends the request. Every status counts as an answer.
    ///
    /// # Errors
    /// When there is no answer; see [`Engine::send`].
    pub fn send(&self, engine: &dyn Engine) -> Result<Answer, EngineError> {
        engine.send(&self.0).map(Answer::new)
    }

    /// Starts the request as a job under a key, or reports the job's state.
    ///
    /// # Errors
    /// When there is no answer; see [`Engine::job`].
    pub fn job(&self, engine: &dyn Engine, key: &str) -> Result<Job, EngineError> {
        Job::new(engine.job(key, &self.0)?)
    }
}

/// The state of a job.
#[derive(Debug, Clone)]
pub enum Job {
    /// In progress, with the last line from the engine.
    Running(Option<String>),
    /// Ended, with the end of the body.
    Done(Answer),
}

impl Job {
    pub(crate) fn new(state: JobState) -> Result<Self, EngineError> {
        Ok(match state {
            JobState::Running(line) => Self::Running(line),
            JobState::Done(response) => Self::Done(Answer::new(response)),
            JobState::Failed(error) => return Err(error),
        })
    }
}

/// An engine's answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, unchanged.
    pub headers: Vec<Header>,
    /// The body, unchanged.
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(response: Response) -> Self {
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
