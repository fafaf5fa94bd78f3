//! The policy for requests of drivers: allowed methods and paths, and allowed keys and values of bodies.
//! It is on for every node, as an engine's unrestricted interface is root on its machine.
//!
//! Unlisted requests are refused. A listed request is allowed for the instance of the call only:
//! [`CallScope`].

mod docker;
mod json;
mod path;
mod simulated;

use super::message::{Body, Request, Response, Transfer};
use super::scope::CallScope;
use http::Method;
use path::Target;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedRequest {
    /// The checked JSON body. It is sent in place of the guest's text.
    pub body: Option<String>,
}

/// An error in a node's configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no policy for this kind of engine.
    #[error("driver: the host has no policy for {0:?} engines; it knows docker and simulated")]
    UnknownKind(String),
    /// A setting is invalid.
    #[error("settings: {0}")]
    Settings(String),
}

/// The policy for one node.
#[derive(Debug)]
pub enum Policy {
    /// Docker Engine API, Podman's included.
    Docker(Box<docker::Docker>),
    /// The simulated engine; calls are restricted to their scope.
    Simulated,
}

impl Policy {
    /// The policy for a kind of engine with a node's settings.
    pub fn for_engine(kind: &str, settings: &Value) -> Result<Self, PolicyError> {
        match kind {
            "docker" => docker::Docker::new(settings)
                .map(|docker| Self::Docker(Box::new(docker)))
                .map_err(PolicyError::Settings),
            "simulated" => Ok(Self::Simulated),
            other => Err(PolicyError::UnknownKind(other.to_owned())),
        }
    }

    /// Allows a request, or refuses it with a reason.
    pub fn check(
        &self,
        scope: &CallScope,
        request: &Request,
        job: bool,
    ) -> Result<CheckedRequest, Refusal> {
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
        Ok(CheckedRequest { body })
    }
}

impl Policy {
    /// Allows a transfer, or refuses it with a reason.
    pub fn check_transfer(&self, scope: &CallScope, transfer: &Transfer) -> Result<(), Refusal> {
        let read = Target::parse(&transfer.read)?;
        let changes = Target::parse(&transfer.changes)?;
        let write = Target::parse(&transfer.write)?;
        match self {
            Self::Docker(_) => docker::transfer(scope, &read, &changes, &write),
            Self::Simulated => Err(Refusal::new("the simulated engine has no transfers")),
        }
    }

    /// Learns ids from an answer, for later requests of the call.
    pub fn learn(&self, scope: &mut CallScope, method: &Method, path: &str, answer: &Response) {
        if let Self::Docker(_) = self
            && let Ok(target) = Target::parse(path)
        {
            docker::learn(scope, method, &target, answer);
        }
    }
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
        match files.iter().find(|file| !known.contains(file)) {
            Some(file) => Err(Refusal::new(format!(
                "file {:?} is not the blueprint's",
                file.path
            ))),
            None => Ok(()),
        }
    }
}
