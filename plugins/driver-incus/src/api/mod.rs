//! The engine's interface: requests by their names, and answers.
//!
//! Every function can fail in two ways. Without an answer, `?` passes the [`Error`] on. An answer
//! with an error status is a [`Refusal`], and the caller interprets it.

pub mod model;
pub mod operation;
pub mod refusal;
mod requests;
mod transfer;

pub use operation::{Making, Outcome};
pub use refusal::{Refusal, Reply};

use model::Envelope;
use serde::de::DeserializeOwned;
use wharf_guest::{Engine, NamedRequest};
use wharf_guest::{EngineAnswer, Error};

/// The status of a cluster without a majority of its database.
const NO_QUORUM: u16 = 503;

/// A client of the engine, for one call of the driver.
pub struct Api<'a> {
    engine: &'a dyn Engine,
}

impl<'a> Api<'a> {
    /// Uses an engine.
    pub fn new(engine: &'a dyn Engine) -> Self {
        Self { engine }
    }

    fn get<T: DeserializeOwned>(&self, request: &str) -> Result<Reply<T>, Error> {
        self.read(&NamedRequest::new(request))
    }

    /// For calls whose answer is a list, or null.
    fn list<T: DeserializeOwned>(&self, request: &NamedRequest) -> Result<Reply<Vec<T>>, Error> {
        let listed = self.read::<Option<Vec<T>>>(request)?;
        Ok(listed.map(Option::unwrap_or_default))
    }

    /// For calls whose answer has content.
    fn read<T: DeserializeOwned>(&self, request: &NamedRequest) -> Result<Reply<T>, Error> {
        match self.accepted(request)? {
            Ok(answer) => Ok(Ok(answer.json::<Envelope<T>>()?.metadata)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// For calls whose answer is not needed.
    fn send(&self, request: &NamedRequest) -> Result<Reply<()>, Error> {
        Ok(self.accepted(request)?.map(|_| ()))
    }

    /// Sends a request. A failed operation is an error inside an answer with status 200.
    fn accepted(&self, request: &NamedRequest) -> Result<Reply<EngineAnswer>, Error> {
        let answer = request.send(self.engine)?;
        if answer.is_success() && !Refusal::is_inside(&answer) {
            return Ok(Ok(answer));
        }
        let refusal = Refusal::read(&answer);
        if refusal.status == NO_QUORUM {
            return Err(Error::Unreachable(refusal.message.clone()));
        }
        Ok(Err(refusal))
    }
}
