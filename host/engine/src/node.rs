//! One node's engine: its transport, requests and jobs.

use super::job::Jobs;
use super::offers::Offers;
use super::registries::Registries;
use super::transport::Transport;
use std::sync::Arc;
use std::time::Instant;
use wharf_domain::ids::NodeId;
use wharf_requests::{RequestFile, Requests};

/// The engine of one node, shared by all calls for it.
#[derive(Debug)]
pub struct EngineNode {
    /// The node's name.
    pub name: NodeId,
    pub(super) transport: Transport,
    pub(super) requests: Requests,
    pub(super) jobs: Jobs,
    pub(super) transfers: Jobs,
    /// The kind of engine.
    pub(super) kind: String,
    /// The offers of all nodes.
    pub(super) offers: Arc<Offers>,
    /// The operator's accounts at registries, which all nodes share.
    pub(super) registries: Arc<Registries>,
}

/// An error in the configuration of a node's engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineOpenError {
    /// A setting is invalid.
    #[error("settings: {0}")]
    Settings(String),
    /// The driver and the endpoint are not for the same kind of engine.
    #[error("endpoint: a driver for {kind} engines needs {needed}")]
    Mismatch {
        /// The driver's engine kind.
        kind: String,
        /// The kind of endpoint that it needs.
        needed: &'static str,
    },
}

impl EngineNode {
    /// Sets up a node's engine. Sends nothing yet.
    pub fn open(
        name: NodeId,
        transport: Transport,
        file: &RequestFile,
        settings: &serde_json::Value,
        offers: Arc<Offers>,
        registries: Arc<Registries>,
    ) -> Result<Self, EngineOpenError> {
        if transport.is_in_process() != file.in_process() {
            let needed = if file.in_process() {
                "simulated:"
            } else {
                "unix:///path/to/socket or https://HOST:PORT"
            };
            return Err(EngineOpenError::Mismatch {
                kind: file.kind().to_owned(),
                needed,
            });
        }
        let requests = Requests::new(file, settings).map_err(EngineOpenError::Settings)?;
        Ok(Self {
            name,
            transport,
            requests,
            jobs: Jobs::default(),
            transfers: Jobs::default(),
            kind: file.kind().to_owned(),
            offers,
            registries,
        })
    }

    /// Whether the request file has a setting with this name.
    pub fn has_setting(&self, name: &str) -> bool {
        self.requests.has_setting(name)
    }

    /// Whether a request of the file has the operator's account at a registry.
    pub fn pulls_with_accounts(&self) -> bool {
        self.requests.has_credentials()
    }

    /// The connection to the engine.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The time of the engine's last answer to any request. None if a later request found it out of
    /// reach.
    pub fn last_answer(&self) -> Option<Instant> {
        self.transport.last_answer()
    }

    /// How often contact with the engine was lost, however briefly.
    pub fn interruptions(&self) -> u64 {
        self.transport.interruptions()
    }
}
