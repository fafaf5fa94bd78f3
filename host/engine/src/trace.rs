//! The span of a request to an engine, and a line with its status and duration.

use super::message::{EngineError, EngineResponse};
use http::Method;
use std::future::Future;
use std::time::Instant;
use tracing::{Instrument, debug, debug_span};

/// Traces a request. Its path holds ids and names, but no secrets.
pub async fn traced(
    method: &Method,
    path: &str,
    request: impl Future<Output = Result<EngineResponse, EngineError>>,
) -> Result<EngineResponse, EngineError> {
    let span = debug_span!("engine", %method, path);
    let begin = Instant::now();
    let answer = request.instrument(span.clone()).await;
    let ms = begin.elapsed().as_millis() as u64;
    match &answer {
        Ok(response) => debug!(parent: &span, status = response.status, ms, "engine request"),
        Err(error) => debug!(parent: &span, %error, ms, "engine request failed"),
    }
    answer
}
