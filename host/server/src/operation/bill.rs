//! The cost of a user's instances.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::Operator;
use wharf_control::history::{self, BillLine};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// The arguments.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bill {
    pub email: String,
    /// Start of the period in milliseconds since 1970.
    pub from: Timestamp,
    /// End of the period, exclusive.
    pub to: Timestamp,
}

impl Operation for Bill {
    const PATH: &'static str = "/bill";
    type Reply = Vec<BillLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        history::bill(operator.db, &self.email, self.from, self.to)
    }
}
