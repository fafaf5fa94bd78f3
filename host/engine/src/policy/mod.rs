//! The policy for requests of drivers: allowed methods and paths, and allowed keys and values of bodies.
//! It is on for every node, as an engine's unrestricted interface is root on its machine. Each kind of
//! engine has a file, [`PolicyFile`].
//!
//! Unlisted requests are refused. A listed request is allowed for the instance of the call only:
//! [`CallScope`](wharf_requests::CallScope).

mod data;
mod path;

pub use data::{Policy, PolicyFile};
use serde_json::Value;
use wharf_domain::blueprint::File;

/// The reason of a refusal, for the guest and the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// An allowed request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedRequest {
    /// The checked JSON body. It is sent in place of the guest's text.
    pub body: Option<String>,
    /// Headers that the host adds.
    pub headers: Vec<(String, String)>,
    /// The name of the rule that allows it.
    pub rule: String,
}

/// A parsed body.
#[derive(Debug)]
pub enum Sent<'a> {
    /// No body.
    Empty,
    /// JSON.
    Json(Value),
    /// An archive of these files, built by the host.
    Archive(&'a [File]),
    /// One file, whose content the host inserts.
    File(&'a File),
}

impl Sent<'_> {
    /// Requires an empty body.
    pub fn nothing(&self) -> Result<(), Refusal> {
        match self {
            Self::Empty => Ok(()),
            _ => Err(Refusal::new("this request takes no body")),
        }
    }

    /// Requires JSON.
    pub fn json(&self) -> Result<&Value, Refusal> {
        match self {
            Self::Json(value) => Ok(value),
            _ => Err(Refusal::new("this request takes a JSON body")),
        }
    }

    /// Requires an archive of `known` files. With other files a driver could expose a secret or run
    /// programs.
    pub fn archive(&self, known: &[File]) -> Result<(), Refusal> {
        let Self::Archive(files) = self else {
            return Err(Refusal::new("this request takes an archive"));
        };
        files.iter().try_for_each(|file| is_known(file, known))
    }

    /// Requires one of the `known` files.
    pub fn file(&self, known: &[File]) -> Result<(), Refusal> {
        match self {
            Self::File(file) => is_known(file, known),
            _ => Err(Refusal::new("this request takes a file")),
        }
    }
}

fn is_known(file: &File, known: &[File]) -> Result<(), Refusal> {
    match known.contains(file) {
        true => Ok(()),
        false => Err(Refusal::new(format!(
            "file {:?} is not the blueprint's",
            file.path
        ))),
    }
}
