//! Requests to an engine and their answers, as in the `engine` interface of the WIT package.

use bytes::Bytes;
use http::Method;
use std::time::Duration;
use wharf_domain::blueprint::File;

/// Longest answer that is read whole, bytes, as `engine.wit` says. The guest's memory has room for it
/// and its parsed form.
pub const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Longest JSON body that is sent, bytes.
pub const MAX_JSON: usize = 1024 * 1024;
/// Timeout of a request that names none.
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
    /// Sent as the bytes of one file, with the headers of the policy.
    File(File),
}

/// A request of a guest, before the policy has checked it.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Extra headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Body,
    /// Timeout for the whole answer.
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
    /// The policy refuses the request; it was not sent.
    #[error("refused by the host's policy: {0}")]
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

/// A transfer of the whole content of one container into another.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Path of the GET for the archive of the content.
    pub read: String,
    /// Path of the GET for the changes to the image.
    pub changes: String,
    /// Path of the PUT that unpacks the archive.
    pub write: String,
}

/// The state of a long request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// In progress, with the last whole line so far.
    Running(Option<String>),
    /// Ended, with the end of its body.
    Done(Response),
    /// Failed.
    Failed(EngineError),
}
