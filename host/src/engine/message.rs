//! Requests to an engine and its answers, mirroring the `engine` interface of the WIT package.

use crate::domain::blueprint::File;
use bytes::Bytes;
use http::Method;
use std::time::Duration;

/// Longest answer that is read whole, bytes, as `engine.wit` promises. Small beside a guest's memory,
/// where it is copied and parsed.
pub const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Longest JSON body that is sent, bytes.
pub const MAX_JSON: usize = 1024 * 1024;
/// How long a request may take that names no time of its own.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request.
#[derive(Debug, Clone)]
pub enum Body {
    /// None.
    Empty,
    /// Sent as `application/json`.
    Json(String),
    /// Sent as a tar archive that the host builds.
    Archive(Vec<File>),
}

/// One request of a guest, before anything was checked.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Extra headers.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Body,
    /// Time for the whole answer.
    pub timeout: Option<Duration>,
}

/// An engine's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Headers whose values are text.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Not sent: the policy does not allow it.
    #[error("refused by the host's policy: {0}")]
    Refused(String),
    /// No connection, or it broke.
    #[error("engine out of reach: {0}")]
    Unreachable(String),
    /// Not answered in time.
    #[error("the engine did not answer in time")]
    Timeout,
    /// The answer is longer than this many bytes.
    #[error("the engine's answer is longer than {0} bytes")]
    TooLarge(u64),
}

/// All that is in one container, put into another.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Path of the GET whose answer is an archive of the whole.
    pub read: String,
    /// Path of the GET that lists what differs from the image.
    pub changes: String,
    /// Path of the PUT that unpacks the archive.
    pub write: String,
}

/// Where a long request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Under way; the last whole line so far.
    Running(Option<String>),
    /// Ended, with the end of its body.
    Done(Response),
    /// Broke.
    Failed(EngineError),
}
