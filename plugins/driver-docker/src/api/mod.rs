//! The engine's interface: paths, bodies and answers.
//!
//! Every function can fail in two ways. Without an answer, `?` passes the [`Error`] on. An answer
//! with an error status is a [`Refusal`], and the caller interprets it.

pub mod container;
pub mod exec;
pub mod image;
pub mod model;
pub mod network;
pub mod refusal;
pub mod system;
pub mod transfer;
pub mod volume;

pub use refusal::{Refusal, Reply};

use serde::de::DeserializeOwned;
use wharf_guest::{Answer, Call, Engine, Error, Method, Path};

/// A client of the engine, with the common prefix of its paths.
pub struct Api<'a> {
    engine: &'a dyn Engine,
    version: String,
}

impl<'a> Api<'a> {
    /// Uses the given version of the interface, or the engine's newest.
    #[must_use]
    pub fn new(engine: &'a dyn Engine, version: Option<&str>) -> Self {
        Self {
            engine,
            version: version.map(|v| format!("/v{v}")).unwrap_or_default(),
        }
    }

    fn path(&self, rest: &str) -> Path {
        Path::new(&format!("{}{rest}", self.version))
    }

    /// A path of Podman's own interface, which requires a version. All supported releases know
    /// 4.0.0.
    fn libpod(&self, rest: &str) -> Path {
        Path::new(&format!("/v4.0.0/libpod{rest}"))
    }

    fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<Reply<T>, Error> {
        self.read(&Call::get(path))
    }

    fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<Reply<T>, Error> {
        match accepted(call.send(self.engine)?) {
            Ok(answer) => answer.json().map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// For calls whose answer is not needed.
    fn send(&self, call: &Call) -> Result<Reply<()>, Error> {
        Ok(accepted(call.send(self.engine)?).map(|_| ()))
    }

    fn act(&self, method: Method, path: &Path) -> Result<Reply<()>, Error> {
        self.send(&Call::new(method, path))
    }
}

/// Engines answer "not modified" if the change holds already.
const NOT_MODIFIED: u16 = 304;

fn accepted(answer: Answer) -> Reply<Answer> {
    if answer.is_success() || answer.status == NOT_MODIFIED {
        Ok(answer)
    } else {
        Err(Refusal::read(&answer))
    }
}
