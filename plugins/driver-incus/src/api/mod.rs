//! The engine's interface: paths, bodies and answers.
//!
//! Every function can fail in two ways. Without an answer, `?` passes the [`Error`] on. An answer
//! with an error status is a [`Refusal`], and the caller interprets it.

pub mod instance;
pub mod model;
pub mod network;
pub mod operation;
pub mod refusal;
pub mod system;
pub mod volume;

pub use operation::Outcome;
pub use refusal::{Refusal, Reply};

use crate::settings::Settings;
use model::Envelope;
use serde::de::DeserializeOwned;
use wharf_guest::{Answer, Call, Engine, Error, Path};

/// The status of a cluster without a majority of its database.
const NO_QUORUM: u16 = 503;

/// A client of the engine, for one member and one project.
pub struct Api<'a> {
    engine: &'a dyn Engine,
    project: String,
    member: String,
    pool: String,
}

impl<'a> Api<'a> {
    /// Uses the member and the project of the settings.
    #[must_use]
    pub fn new(engine: &'a dyn Engine, settings: &Settings) -> Self {
        Self {
            engine,
            project: settings.project.clone(),
            member: settings.member.clone(),
            pool: settings.pool.clone(),
        }
    }

    /// Completes a path by the project.
    fn in_project(&self, path: Path) -> Path {
        path.query("project", &self.project)
    }

    /// Completes a path by the member.
    fn at_member(&self, path: Path) -> Path {
        path.query("target", &self.member)
    }

    fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<Reply<T>, Error> {
        self.read(&Call::get(path))
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
            return Err(Error::Unreachable(refusal.message));
        }
        Ok(Err(refusal))
    }
}
