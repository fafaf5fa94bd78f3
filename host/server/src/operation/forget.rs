//! Removal of an instance from the books.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{Operator, Selector};
use wharf_domain::error::Error;

/// The arguments.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The UUID of an instance, or the name of one that is not deleted.
    pub instance: String,
    /// Forget it even if its node may have it.
    pub force: bool,
}

impl Operation for Forget {
    const PATH: &'static str = "/forget";
    /// The UUID.
    type Reply = String;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let selector = Selector::parse(&self.instance);
        let id = operator.forget(&selector, self.force).await?;
        Ok(id.to_string())
    }
}
