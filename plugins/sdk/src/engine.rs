//! Calls to the node's engine.

use crate::Path;
use crate::types::{
    Body, EngineError, Error, File, Header, JobState, Method, Request, Response, Transfer,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The one engine a driver reaches. [`HostEngine`] is the real one; tests bring their own.
pub trait Engine {
    /// Sends one request and reads the whole answer.
    ///
    /// # Errors
    /// As the `engine` interface says. After a timeout or a broken connection the engine may have
    /// done the work.
    fn send(&self, request: &Request) -> Result<Response, EngineError>;

    /// Starts a long request in the host under a key, or says where it is.
    ///
    /// # Errors
    /// When the host cannot take the job.
    fn job(&self, key: &str, request: &Request) -> Result<JobState, EngineError>;

    /// Begins the transfer of the call's instance.
    ///
    /// # Errors
    /// When the host cannot take it.
    fn begin_transfer(&self, _: &Transfer) -> Result<(), EngineError> {
        Err(EngineError::Refused("no transfers".into()))
    }

    /// Where the transfer of the call's instance is, if there is one.
    ///
    /// # Errors
    /// In a call that is for no instance.
    fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Ok(None)
    }

    /// Ends the transfer of the call's instance, if there is one.
    ///
    /// # Errors
    /// In a call that is for no instance.
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

/// There is no host outside of one.
#[cfg(not(target_family = "wasm"))]
impl Engine for HostEngine {
    fn send(&self, _: &Request) -> Result<Response, EngineError> {
        Err(EngineError::Unreachable("not running in a host".into()))
    }

    fn job(&self, _: &str, _: &Request) -> Result<JobState, EngineError> {
        Err(EngineError::Unreachable("not running in a host".into()))
    }
}

/// One request in the making.
#[derive(Debug, Clone)]
pub struct Call(Request);

impl Call {
    /// A request without a body.
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

    /// A `GET`.
    #[must_use]
    pub fn get(path: &Path) -> Self {
        Self::new(Method::Get, path)
    }

    /// A `POST`.
    #[must_use]
    pub fn post(path: &Path) -> Self {
        Self::new(Method::Post, path)
    }

    /// A `PUT`.
    #[must_use]
    pub fn put(path: &Path) -> Self {
        Self::new(Method::Put, path)
    }

    /// A `PATCH`.
    #[must_use]
    pub fn patch(path: &Path) -> Self {
        Self::new(Method::Patch, path)
    }

    /// A `DELETE`.
    #[must_use]
    pub fn delete(path: &Path) -> Self {
        Self::new(Method::Delete, path)
    }

    /// With this JSON body.
    ///
    /// # Errors
    /// [`Error::Other`] when the value has no JSON form, such as a map with keys that are no text.
    pub fn json<T: Serialize>(mut self, body: &T) -> Result<Self, Error> {
        let text = serde_json::to_string(body)
            .map_err(|problem| Error::Other(format!("request body: {problem}")))?;
        self.0.body = Body::Json(text);
        Ok(self)
    }

    /// With a tar archive of these files, which the host builds and puts the secrets into.
    #[must_use]
    pub fn archive(mut self, files: &[File]) -> Self {
        self.0.body = Body::Archive(files.to_vec());
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0.headers.push(Header {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        self
    }

    /// With another time limit than the 10 seconds of the `engine` interface.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u32) -> Self {
        self.0.timeout_ms = Some(ms);
        self
    }

    /// Sends it. Any status is an answer.
    ///
    /// # Errors
    /// When there is no answer: see [`Engine::send`].
    pub fn send(&self, engine: &dyn Engine) -> Result<Answer, EngineError> {
        engine.send(&self.0).map(Answer::new)
    }

    /// Starts it as a job under a key, or says where that job is.
    ///
    /// # Errors
    /// When there is no answer: see [`Engine::job`].
    pub fn job(&self, engine: &dyn Engine, key: &str) -> Result<Job, EngineError> {
        Ok(match engine.job(key, &self.0)? {
            JobState::Running(line) => Job::Running(line),
            JobState::Done(response) => Job::Done(Answer::new(response)),
            JobState::Failed(error) => return Err(error),
        })
    }
}

/// Where a job is.
#[derive(Debug, Clone)]
pub enum Job {
    /// Under way, with the last line the engine sent.
    Running(Option<String>),
    /// Ended, with the end of its body.
    Done(Answer),
}

/// An engine's answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// As they came.
    pub headers: Vec<Header>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Answer {
    fn new(response: Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers,
            body: response.body,
        }
    }

    /// The first header of that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }

    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as a JSON value of the type asked for.
    ///
    /// # Errors
    /// [`Error::Other`], saying where the body is not what was expected.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|problem| Error::Other(format!("the engine's answer: {problem}")))
    }
}
