//! The `engine` import: passes requests to the node's engine.

use crate::bindings::engine as wit;
use crate::convert::blueprint::file_from_guest;
use crate::guest::Guest;
use http::Method;
use std::time::Duration;
use wharf_engine as host;

impl wit::Host for Guest {
    async fn send(&mut self, request: wit::Request) -> Result<wit::Response, wit::EngineError> {
        let Some(access) = &mut self.access else {
            return Err(no_engine());
        };
        access
            .send(request_from_guest(request))
            .await
            .map(response_to_guest)
            .map_err(error_to_guest)
    }

    async fn job(
        &mut self,
        key: String,
        request: wit::Request,
    ) -> Result<wit::JobState, wit::EngineError> {
        let Some(access) = &mut self.access else {
            return Err(no_engine());
        };
        access
            .job(&key, request_from_guest(request))
            .map(state_to_guest)
            .map_err(error_to_guest)
    }

    async fn begin_transfer(&mut self, transfer: wit::Transfer) -> Result<(), wit::EngineError> {
        let access = self.access.as_mut().ok_or_else(no_engine)?;
        access
            .begin_transfer(transfer_from_guest(transfer))
            .map_err(error_to_guest)
    }

    async fn transfer_state(&mut self) -> Result<Option<wit::JobState>, wit::EngineError> {
        let access = self.access.as_ref().ok_or_else(no_engine)?;
        let state = access.transfer_state().map_err(error_to_guest)?;
        Ok(state.map(state_to_guest))
    }

    async fn end_transfer(&mut self) -> Result<(), wit::EngineError> {
        let access = self.access.as_ref().ok_or_else(no_engine)?;
        access.end_transfer().map_err(error_to_guest)
    }
}

fn transfer_from_guest(transfer: wit::Transfer) -> host::Transfer {
    host::Transfer {
        read: transfer.read,
        changes: transfer.changes,
        write: transfer.write,
    }
}

/// The error of a call at load time, which has no engine.
pub(super) fn no_engine() -> wit::EngineError {
    wit::EngineError::Refused("this call has no engine".into())
}

fn request_from_guest(request: wit::Request) -> host::Request {
    host::Request {
        method: match request.method {
            wit::Method::Get => Method::GET,
            wit::Method::Head => Method::HEAD,
            wit::Method::Post => Method::POST,
            wit::Method::Put => Method::PUT,
            wit::Method::Patch => Method::PATCH,
            wit::Method::Delete => Method::DELETE,
        },
        path: request.path,
        headers: request
            .headers
            .into_iter()
            .map(|header| (header.name, header.value))
            .collect(),
        body: match request.body {
            wit::Body::Empty => host::Body::Empty,
            wit::Body::Json(text) => host::Body::Json(text),
            wit::Body::Archive(files) => {
                host::Body::Archive(files.into_iter().map(file_from_guest).collect())
            }
            wit::Body::File(file) => host::Body::File(file_from_guest(file)),
        },
        timeout: request
            .timeout_ms
            .map(|ms| Duration::from_millis(ms.into())),
    }
}

pub(super) fn response_to_guest(response: host::Response) -> wit::Response {
    wit::Response {
        status: response.status,
        headers: response
            .headers
            .into_iter()
            .map(|(name, value)| wit::Header { name, value })
            .collect(),
        body: response.body.into(),
    }
}

pub(super) fn state_to_guest(state: host::JobState) -> wit::JobState {
    match state {
        host::JobState::Running(line) => wit::JobState::Running(line),
        host::JobState::Done(response) => wit::JobState::Done(response_to_guest(response)),
        host::JobState::Failed(error) => wit::JobState::Failed(error_to_guest(error)),
    }
}

pub(super) fn error_to_guest(error: host::EngineError) -> wit::EngineError {
    match error {
        host::EngineError::Refused(why) => wit::EngineError::Refused(why),
        host::EngineError::Unreachable(why) => wit::EngineError::Unreachable(why),
        host::EngineError::Timeout => wit::EngineError::Timeout,
        host::EngineError::TooLarge(limit) => wit::EngineError::TooLarge(limit),
    }
}
