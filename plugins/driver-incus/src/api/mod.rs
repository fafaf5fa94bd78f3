//! The engine's interface: requests by their names, and answers.
//!
//! Every function can fail in two ways. Without an answer, `?` passes the [`Error`] on. An answer
//! with an error status is a [`Refusal`], and the caller interprets it.

pub mod model;
pub mod operation;
pub mod refusal;
mod requests;

pub use operation::Outcome;
pub use refusal::{Refusal, Reply};

use model::Envelope;
use serde::de::DeserializeOwned;
use wharf_guest::{Answer, Error};
use wharf_guest::{Call, Engine};

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
        self.read(&Call::named(request))
    }

    /// For calls whose answer is a list, or null.
    fn list<T: DeserializeOwned>(&self, call: &Call) -> Result<Reply<Vec<T>>, Error> {
        let listed = self.read::<Option<Vec<T>>>(call)?;
        Ok(listed.map(Option::unwrap_or_default))
    }

    /// For calls whose answer has content.
    fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<Reply<T>, Error> {
        match self.accepted(call)? {
            Ok(answer) => Ok(Ok(answer.json::<Envelope<T>>()?.metadata)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// For calls whose answer is not needed.
    fn send(&self, call: &Call) -> Result<Reply<()>, Error> {
        Ok(self.accepted(call)?.map(|_| ()))
    }

    /// Sends a request. A failed operation is an error inside an answer with status 200.
    fn accepted(&self, call: &Call) -> Result<Reply<Answer>, Error> {
        let answer = call.send(self.engine)?;
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
