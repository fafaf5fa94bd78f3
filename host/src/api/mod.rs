//! One file per endpoint: parse, use case, render. Knows no HTTP; what the answers' status is,
//! only `http` knows.

mod answers;
pub mod create;
pub mod delete;
pub mod fuzz;
pub mod get;
pub mod list;
pub mod ports;
mod public_key;
pub mod restart;
mod s3_url;
pub mod stats;
pub mod stop;
#[cfg(test)]
mod tied;
pub mod update;
mod wire;

use crate::app::App;
use crate::domain::error::Error;
use crate::schema::{SchemaError, Schemas};
use answers::Answers;
use bytes::Bytes;
use serde::Serialize;
use std::sync::Arc;

/// What every endpoint works with.
pub struct Api {
    app: Arc<App>,
    schemas: Schemas,
    answers: Answers,
}

impl Api {
    /// Compiles the schemas.
    pub fn new(app: Arc<App>) -> Result<Self, SchemaError> {
        Ok(Self {
            answers: Answers::new(app.answer_cache_bytes()),
            schemas: Schemas::compile()?,
            app,
        })
    }

    /// The use cases.
    pub fn app(&self) -> &App {
        &self.app
    }
}

/// What an endpoint answers when it did what it was asked; bodies are JSON.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done, and this is the result.
    Done(Bytes),
    /// Something new is there.
    Created(Bytes),
    /// Done, and there is nothing to say.
    Gone,
}

/// Serialises straight into the answer's buffer.
fn render<T: Serialize>(value: &T, capacity: usize) -> Result<Bytes, Error> {
    let mut out = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut out, value)
        .map_err(|error| Error::caused("cannot render an answer", error))?;
    Ok(out.into())
}
