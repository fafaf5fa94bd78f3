//! Nodes.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{NodeLine, Operator};
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
