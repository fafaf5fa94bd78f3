//! `wharf forget`.

use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::line;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_instances::Selector;
use wharf_operations::Operator;

/// Remove an instance that will never come back, without its node
///
/// Its billing ends, and its resources, ports and addresses are free. An object that does come back is
/// removed from its node.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The UUID of an instance, or the name of one that is not deleted
    instance: String,
    /// Forget it even if its node may still have it
    #[arg(long)]
    force: bool,
}

impl Operation for Forget {
    const PATH: &'static str = "/forget";
    type Reply = InstanceId;

    async fn run(&self, operator: Operator<'_>) -> Result<InstanceId, Error> {
        let selector = Selector::parse(&self.instance);
        operator.forget(&selector, self.force).await
    }

    fn print(&self, id: &InstanceId) -> Result<()> {
        line(&format!("{id} is forgotten"))
    }
}
