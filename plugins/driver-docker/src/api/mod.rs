//! The engine's interface: its paths, bodies and answers.
//!
//! Every function has two ways to fail. Without an answer there is nothing to decide, and `?`
//! passes the [`Error`] on; an answer that says no is a [`Refusal`], which the caller reads.

pub mod container;
pub mod exec;
pub mod image;
pub mod model;
pub mod network;
pub mod refusal;
pub mod system;
pub mod transfer;

pub use refusal::{Refusal, Reply};

use serde::de::DeserializeOwned;
use wharf_guest::{Answer, Call, Engine, Error, Method, Path};

/// The engine, and how its paths begin.
pub struct Api<'a> {
    engine: &'a dyn Engine,
    version: String,
}

impl<'a> Api<'a> {
    /// Speaks the version named, or the engine's newest.
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

    /// Podman's own interface. Its version is always named; 4.0.0 is known to all that are supported.
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

    /// For calls whose answer holds nothing that is needed.
    fn send(&self, call: &Call) -> Result<Reply<()>, Error> {
        Ok(accepted(call.send(self.engine)?).map(|_| ()))
    }

    fn act(&self, method: Method, path: &Path) -> Result<Reply<()>, Error> {
        self.send(&Call::new(method, path))
    }
}

/// "Not modified" is how engines say that it is true already.
const NOT_MODIFIED: u16 = 304;

fn accepted(answer: Answer) -> Reply<Answer> {
    if answer.is_success() || answer.status == NOT_MODIFIED {
        Ok(answer)
    } else {
        Err(Refusal::read(&answer))
    }
}
