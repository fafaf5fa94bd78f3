//! What a driver may ask its engine: method and path templates and, where a body decides what the
//! engine does, an allow-list of its keys and values. On for every node; an engine's unrestricted
//! interface is root on the machine it runs on.
//!
//! Everything is refused that is not listed, and what is listed holds for the instance of the call
//! in progress only ([`Scope`]).

mod docker;
mod json;
mod path;
mod simulated;

use super::message::{Body, Request, Response, Transfer};
use super::scope::Scope;
use crate::domain::blueprint::File;
use http::Method;
use path::Target;
use serde_json::Value;

/// Why a request is not sent. For the guest and the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// A request that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The JSON body as checked, to be sent in place of the guest's text.
    pub body: Option<String>,
}

/// Settings that the policy can't read, or a kind of engine without a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy exists for this kind.
    #[error("driver: the host has no policy for {0:?} engines; it knows docker and simulated")]
    UnknownKind(String),
    /// A setting of the node.
    #[error("settings: {0}")]
    Settings(String),
}

/// The policy for one node.
#[derive(Debug)]
pub enum Policy {
    /// Docker Engine API, Podman's included.
    Docker(docker::Docker),
    /// The simulated engine: nothing real to protect, but held to the scope all the same.
    Simulated,
}

impl Policy {
    /// The policy for a kind of engine with a node's settings.
    pub fn for_engine(kind: &str, settings: &Value) -> Result<Self, PolicyError> {
        match kind {
            "docker" => docker::Docker::new(settings)
                .map(Self::Docker)
                .map_err(PolicyError::Settings),
            "simulated" => Ok(Self::Simulated),
            other => Err(PolicyError::UnknownKind(other.to_owned())),
        }
    }

    /// Passes a request or says why not.
    pub fn check(&self, scope: &Scope, request: &Request, job: bool) -> Result<Passed, Refusal> {
        for (name, _) in &request.headers {
            if !name.eq_ignore_ascii_case("accept") {
                return Err(Refusal::new(format!(
                    "header {name:?}; only accept may be set"
                )));
            }
        }
        let target = Target::parse(&request.path)?;
        let body = match &request.body {
            Body::Json(text) => Sent::Json(
                serde_json::from_str(text)
                    .map_err(|_| Refusal::new("the body is not valid JSON"))?,
            ),
            Body::Archive(files) => Sent::Archive(files),
            Body::Empty => Sent::Empty,
        };
        match self {
            Self::Docker(docker) => docker.check(scope, &request.method, &target, &body, job)?,
            Self::Simulated => simulated::check(scope, &request.method, &target, &body, job)?,
        }
        let body = match body {
            Sent::Json(value) => Some(value.to_string()),
            Sent::Archive(_) | Sent::Empty => None,
        };
        Ok(Passed { body })
    }
}

impl Policy {
    /// Passes a transfer or says why not.
    pub fn check_transfer(&self, scope: &Scope, transfer: &Transfer) -> Result<(), Refusal> {
        let read = Target::parse(&transfer.read)?;
        let changes = Target::parse(&transfer.changes)?;
        let write = Target::parse(&transfer.write)?;
        match self {
            Self::Docker(_) => docker::transfer(scope, &read, &changes, &write),
            Self::Simulated => Err(Refusal::new("the simulated engine has no transfers")),
        }
    }

    /// Takes from an engine's answer what later requests of the same call may name.
    pub fn learn(&self, scope: &mut Scope, method: &Method, path: &str, answer: &Response) {
        if let Self::Docker(_) = self
            && let Ok(target) = Target::parse(path)
        {
            docker::learn(scope, method, &target, answer);
        }
    }
}

/// A body, parsed.
#[derive(Debug)]
pub enum Sent<'a> {
    /// No body.
    Empty,
    /// JSON.
    Json(Value),
    /// An archive of these files, built by the host.
    Archive(&'a [File]),
}

impl Sent<'_> {
    /// There must be none.
    pub fn nothing(&self) -> Result<(), Refusal> {
        match self {
            Self::Empty => Ok(()),
            _ => Err(Refusal::new("this request takes no body")),
        }
    }

    /// It must be JSON.
    pub fn json(&self) -> Result<&Value, Refusal> {
        match self {
            Self::Json(value) => Ok(value),
            _ => Err(Refusal::new("this request takes a JSON body")),
        }
    }

    /// It must be an archive of files that are among these, each as it is there: with files of its
    /// own choice a driver could put a secret where it can be read, or run what it likes.
    pub fn archive(&self, known: &[File]) -> Result<(), Refusal> {
        let Self::Archive(files) = self else {
            return Err(Refusal::new("this request takes an archive"));
        };
        match files.iter().find(|file| !known.contains(file)) {
            Some(file) => Err(Refusal::new(format!(
                "file {:?} is not the blueprint's",
                file.path
            ))),
            None => Ok(()),
        }
    }
}
