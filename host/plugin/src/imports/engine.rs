//! The `engine` import: passes requests to the node's engine.

use crate::bindings::engine as wit;
use crate::guest::Guest;
use std::time::Duration;
use wharf_engine as host;

impl wit::Host for Guest {
    async fn send(&mut self, request: wit::Request) -> Result<wit::Response, wit::EngineError> {
        let answer = self.engine()?.send(&from_guest(request)).await;
        answer.map(response_to_guest).map_err(error_to_guest)
    }

    async fn show(&mut self, request: wit::Request) -> Result<wit::Written, wit::EngineError> {
        let written = self.engine()?.show(&from_guest(request));
        let written = written.map_err(error_to_guest)?;
        Ok(wit::Written {
            method: written.method,
            target: written.target,
            body: written.body,
        })
    }

    async fn job(&mut self, request: wit::Request) -> Result<wit::JobState, wit::EngineError> {
        let state = self.engine()?.job(&from_guest(request));
        state.map(state_to_guest).map_err(error_to_guest)
    }

    async fn begin_transfer(&mut self, request: wit::Request) -> Result<(), wit::EngineError> {
        let begun = self.engine()?.begin_transfer(&from_guest(request));
        begun.map_err(error_to_guest)
    }

    async fn transfer_state(&mut self) -> Result<Option<wit::JobState>, wit::EngineError> {
        let state = self.engine()?.transfer_state().map_err(error_to_guest)?;
        Ok(state.map(state_to_guest))
    }

    async fn end_transfer(&mut self) -> Result<(), wit::EngineError> {
        self.engine()?.end_transfer().map_err(error_to_guest)
    }
}

impl Guest {
    fn engine(&mut self) -> Result<&mut host::EngineAccess, wit::EngineError> {
        self.access.as_mut().ok_or_else(no_engine)
    }
}

fn from_guest(request: wit::Request) -> host::EngineRequest {
    host::EngineRequest {
        name: request.name,
        arguments: request.arguments,
        timeout: request
            .timeout_ms
            .map(|ms| Duration::from_millis(ms.into())),
    }
}

/// The error of a call at load time, which has no engine.
fn no_engine() -> wit::EngineError {
    wit::EngineError::Refused("this call has no engine".into())
}

fn response_to_guest(response: host::EngineResponse) -> wit::Response {
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

fn state_to_guest(state: host::JobState) -> wit::JobState {
    match state {
        host::JobState::Running(line) => wit::JobState::Running(line),
        host::JobState::Done(response) => wit::JobState::Done(response_to_guest(response)),
        host::JobState::Failed(error) => wit::JobState::Failed(error_to_guest(error)),
    }
}

fn error_to_guest(error: host::EngineError) -> wit::EngineError {
    match error {
        host::EngineError::Refused(why) => wit::EngineError::Refused(why),
        host::EngineError::Unreachable(why) => wit::EngineError::Unreachable(why),
        host::EngineError::Timeout => wit::EngineError::Timeout,
        host::EngineError::TooLarge(limit) => wit::EngineError::TooLarge(limit),
    }
}
