//! The log line of a request.

use crate::domain::ids::UserId;
use http::{HeaderValue, Method};
use std::mem;
use std::time::Instant;

/// Written with the answer; or when nobody waits for one any more, since what was asked for may be
/// done all the same.
pub(super) struct Line {
    started: Instant,
    pub(super) id: HeaderValue,
    method: Method,
    /// As the document spells it, once it is known.
    pub(super) route: Option<&'static str>,
    /// Who asked, once that is known.
    pub(super) user: Option<UserId>,
    written: bool,
}

impl Line {
    /// Of a request that has just come.
    pub(super) fn new(id: HeaderValue, method: Method) -> Self {
        Self {
            started: Instant::now(),
            id,
            method,
            route: None,
            user: None,
            written: false,
        }
    }

    /// Writes it; the request's id is the answer's.
    pub(super) fn write(mut self, status: u16) -> HeaderValue {
        self.written = true;
        tracing::info!(
            target: "wharf::request",
            id = self.id(),
            method = self.method.as_str(),
            route = self.route(),
            status,
            ms = self.ms(),
            user = self.user.map(|user| user.0),
        );
        mem::replace(&mut self.id, HeaderValue::from_static(""))
    }

    /// For the log.
    pub(super) fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }

    fn route(&self) -> &'static str {
        self.route.unwrap_or("-")
    }

    /// To a microsecond.
    fn ms(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.written {
            return;
        }
        let why = match std::thread::panicking() {
            true => "it panicked",
            false => "the client went away before the answer",
        };
        tracing::info!(
            target: "wharf::request",
            id = self.id(),
            method = self.method.as_str(),
            route = self.route(),
            ms = self.ms(),
            user = self.user.map(|user| user.0),
            "{why}"
        );
    }
}
