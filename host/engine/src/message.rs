//! Requests to an engine and their answers, as in the `engine` interface of the WIT package.

use bytes::Bytes;
use std::time::Duration;

/// Longest answer that is read whole, bytes, as `engine.wit` says. The guest's memory has room for it
/// and its parsed form.
pub const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Timeout of a request that names none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that a driver names.
#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// Its name in the request file.
    pub name: String,
    /// Names and values of its arguments.
    pub arguments: Vec<(String, String)>,
    /// Timeout for the whole answer.
    pub timeout: Option<Duration>,
}

/// A request as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRequest {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// JSON body; none if the body is empty or has files.
    pub body: Option<String>,
}

/// An engine's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers whose values are text.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
}

impl EngineResponse {
    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The host does not write the request in this call; it was not sent.
    #[error("refused by the host: {0}")]
    Refused(String),
    /// There is no connection, or it broke.
    #[error("engine out of reach: {0}")]
    Unreachable(String),
    /// The engine did not answer in time.
    #[error("the engine did not answer in time")]
    Timeout,
    /// The answer is longer than this limit, in bytes.
    #[error("the engine's answer is longer than {0} bytes")]
    TooLarge(u64),
}

/// The state of a long request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// In progress, with the last whole line so far.
    Running(Option<String>),
    /// Ended, with the end of its body.
    Done(EngineResponse),
    /// Failed.
    Failed(EngineError),
}
