//! One node's engine: transport, policy and jobs together.

use super::job::Jobs;
use super::policy::{Policy, PolicyError};
use super::transport::Transport;
use crate::domain::ids::NodeId;

/// The engine of one node, shared by all calls for it.
#[derive(Debug)]
pub struct EngineNode {
    /// The node's name, for the log.
    pub name: NodeId,
    pub(super) transport: Transport,
    pub(super) policy: Policy,
    pub(super) jobs: Jobs,
    pub(super) transfers: Jobs,
}

/// A node whose engine can't be set up as configured.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings or the kind of engine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The driver and the endpoint are not for the same kind of engine.
    #[error("endpoint: a driver for {kind} engines needs {needed}")]
    Mismatch {
        /// The driver's engine kind.
        kind: String,
        /// Which endpoint it would need.
        needed: &'static str,
    },
}

impl EngineNode {
    /// Sets up the way to a node's engine. Nothing is sent yet.
    pub fn open(
        name: NodeId,
        transport: Transport,
        engine_kind: &str,
        settings: &serde_json::Value,
    ) -> Result<Self, OpenError> {
        let policy = Policy::for_engine(engine_kind, settings)?;
        let simulated = matches!(transport, Transport::InProcess(_));
        if simulated != matches!(policy, Policy::Simulated) {
            let needed = if simulated {
                "unix:///path/to/socket"
            } else {
                "simulated:"
            };
            return Err(OpenError::Mismatch {
                kind: engine_kind.to_owned(),
                needed,
            });
        }
        Ok(Self {
            name,
            transport,
            policy,
            jobs: Jobs::default(),
            transfers: Jobs::default(),
        })
    }

    /// How often contact with the engine was lost since the start, however briefly.
    pub fn interruptions(&self) -> u64 {
        self.transport.interruptions()
    }
}
