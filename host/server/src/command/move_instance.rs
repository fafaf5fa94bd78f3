//! `wharf move`.

use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::line;
use wharf_domain::error::Error;
use wharf_operations::Operator;
use wharf_operations::move_instance::BegunMove;

/// Move an instance to another node, with its disk and its name
///
/// The node is one of the same cluster, or has an engine of the same kind that copies content. A stopped instance
/// moves at once. A running one is stopped and starts again on the node, if its owner permits moves. The old disk goes
/// once the node has everything. Addresses and ports may change, and the owner's events tell the new ones.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The UUID or the name of the instance
    instance: String,
    /// The name of the node
    node: String,
}

impl Operation for Move {
    const PATH: &'static str = "/move";
    type Reply = BegunMove;

    async fn run(&self, operator: Operator<'_>) -> Result<BegunMove, Error> {
        operator.move_instance(&self.instance, &self.node).await
    }

    fn print(&self, begun: &BegunMove) -> Result<()> {
        let how = if begun.copies {
            "; its content is copied"
        } else {
            ""
        };
        line(&format!(
            "{} moves to node {}{how}; `wharf events --instance {}` shows when it has arrived",
            begun.instance, begun.node, begun.instance
        ))
    }
}
