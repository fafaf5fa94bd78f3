//! Requests and responses.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The body of a request.
pub enum Body {
    /// Nothing.
    Empty,
    /// `application/json`.
    Json(Value),
    /// `application/x-tar`, from memory.
    Tar(Vec<u8>),
    /// `application/x-tar`, streamed from a file.
    TarFile(PathBuf),
}

/// One request.
pub struct Request<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The body.
    pub body: Body,
    /// A header beside the usual ones. No error and no log has it.
    pub header: Option<(&'a str, &'a str)>,
    /// An API key, sent as `Authorization: Bearer`.
    pub key: Option<&'a str>,
    /// The limit for request and response together.
    pub timeout: Duration,
    /// Limits within the response.
    pub quiet: Option<Quiet>,
}

/// Longest times without a byte of the response.
#[derive(Debug, Clone, Copy)]
pub struct Quiet {
    /// Before the first byte of the body.
    pub first: Duration,
    /// After it.
    pub next: Duration,
}

impl<'a> Request<'a> {
    /// A request without a body and with a timeout of ten seconds.
    pub fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            body: Body::Empty,
            header: None,
            key: None,
            timeout: Duration::from_secs(10),
            quiet: None,
        }
    }

    /// With a JSON body.
    pub fn json(mut self, body: Value) -> Self {
        self.body = Body::Json(body);
        self
    }

    /// With another body.
    pub fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// With another header, if there is one.
    pub fn header(mut self, header: Option<(&'a str, &'a str)>) -> Self {
        self.header = header;
        self
    }

    /// With an API key.
    pub fn key(mut self, key: &'a str) -> Self {
        self.key = Some(key);
        self
    }

    /// With another timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With limits within the response.
    pub fn quiet(mut self, quiet: Quiet) -> Self {
        self.quiet = Some(quiet);
        self
    }
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} with a body that is not JSON", self.status))
    }

    /// Fails with the body unless the status is 2xx.
    pub fn ok(self) -> Result<Self> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        bail!(
            "{}: {}",
            self.status,
            String::from_utf8_lossy(&self.body).trim()
        );
    }
}
