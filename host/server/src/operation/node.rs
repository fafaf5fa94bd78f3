//! Nodes.

use super::Operation;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_control::{LeftLine, LostLine, NodeLine, Operator};
use wharf_domain::error::Error;

/// Lists the nodes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListNodes {}

impl Operation for ListNodes {
    const PATH: &'static str = "/nodes/list";
    type Reply = Vec<NodeLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.nodes()
    }
}

/// Accepts the engine that a node with an outage shows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptNode {
    /// The node's name.
    pub node: String,
}

impl Operation for AcceptNode {
    const PATH: &'static str = "/nodes/accept";
    type Reply = ();

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.accept_node(&self.node).await
    }
}

/// Gives up a node that will not come back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoseNode {
    /// The node's name.
    pub node: String,
}

impl Operation for LoseNode {
    const PATH: &'static str = "/nodes/lost";
    /// The server asks the node before.
    const TIMEOUT: Duration = Duration::from_secs(120);
    /// The lost instances.
    type Reply = Vec<LostLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.lose_node(&self.node).await
    }
}

/// Begins or ends the drain of a node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// The node's name.
    pub node: String,
    /// Whether it takes no instances from now on.
    pub drained: bool,
}

impl Operation for DrainNode {
    const PATH: &'static str = "/nodes/drain";
    /// The instances that are left on the node.
    type Reply = Vec<LeftLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.drain_node(&self.node, self.drained).await
    }
}
