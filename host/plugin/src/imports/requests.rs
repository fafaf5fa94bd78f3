//! The `requests` import: passes named requests to the node's engine.

use super::engine::{error_to_guest, no_engine, response_to_guest, state_to_guest};
use crate::bindings::engine::{EngineError, JobState, Response};
use crate::bindings::requests as wit;
use crate::guest::Guest;
use std::time::Duration;
use wharf_engine::{Access, NamedRequest};

impl wit::Host for Guest {
    async fn send(&mut self, request: wit::Request) -> Result<Response, EngineError> {
        let answer = self.engine()?.send_named(&from_guest(request)).await;
        answer.map(response_to_guest).map_err(error_to_guest)
    }

    async fn show(&mut self, request: wit::Request) -> Result<wit::Written, EngineError> {
        let written = self.engine()?.show(&from_guest(request));
        let written = written.map_err(error_to_guest)?;
        Ok(wit::Written {
            method: written.method,
            target: written.target,
            body: written.body,
        })
    }

    async fn job(&mut self, request: wit::Request) -> Result<JobState, EngineError> {
        let state = self.engine()?.job_named(&from_guest(request));
        state.map(state_to_guest).map_err(error_to_guest)
    }

    async fn begin_transfer(&mut self, request: wit::Request) -> Result<(), EngineError> {
        let begun = self.engine()?.begin_named_transfer(&from_guest(request));
        begun.map_err(error_to_guest)
    }

    async fn transfer_state(&mut self) -> Result<Option<JobState>, EngineError> {
        let state = self.engine()?.transfer_state().map_err(error_to_guest)?;
        Ok(state.map(state_to_guest))
    }

    async fn end_transfer(&mut self) -> Result<(), EngineError> {
        self.engine()?.end_transfer().map_err(error_to_guest)
    }
}

impl Guest {
    fn engine(&mut self) -> Result<&mut Access, EngineError> {
        self.access.as_mut().ok_or_else(no_engine)
    }
}

fn from_guest(request: wit::Request) -> NamedRequest {
    NamedRequest {
        name: request.name,
        arguments: request.arguments,
        timeout: request
            .timeout_ms
            .map(|ms| Duration::from_millis(ms.into())),
    }
}
