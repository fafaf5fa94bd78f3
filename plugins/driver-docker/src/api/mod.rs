//! The engine's interface: requests by their names in `requests.toml`, and answers.
//!
//! Every function can fail in two ways. Without an answer, `?` passes the [`Error`] on. An answer
//! with an error status is a [`Refusal`], and the caller interprets it.

pub mod container;
pub mod exec;
pub mod image;
pub mod model;
pub mod network;
pub mod refusal;
pub mod snapshot;
pub mod system;
mod transfer;
pub mod volume;

pub use refusal::{Refusal, Reply};

use serde::de::DeserializeOwned;
use wharf_guest::{Engine, NamedRequest};
use wharf_guest::{EngineAnswer, Error};

/// A client of the engine.
pub struct Api<'a> {
    engine: &'a dyn Engine,
}

impl<'a> Api<'a> {
    /// Uses this engine.
    pub fn new(engine: &'a dyn Engine) -> Self {
        Self { engine }
    }

    fn read<T: DeserializeOwned>(&self, request: &NamedRequest) -> Result<Reply<T>, Error> {
        match accepted(request.send(self.engine)?) {
            Ok(answer) => answer.json().map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// For calls whose answer is not needed.
    fn send(&self, request: &NamedRequest) -> Result<Reply<()>, Error> {
        Ok(accepted(request.send(self.engine)?).map(|_| ()))
    }
}

/// Engines answer "not modified" if the change holds already.
const NOT_MODIFIED: u16 = 304;

fn accepted(answer: EngineAnswer) -> Reply<EngineAnswer> {
    if answer.is_success() || answer.status == NOT_MODIFIED {
        Ok(answer)
    } else {
        Err(Refusal::read(&answer))
    }
}
