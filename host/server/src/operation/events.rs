//! The event log of an instance.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::history::{self, EventLine};
use wharf_control::{Operator, Selector};
use wharf_domain::error::Error;

/// The argument.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// The UUID of an instance, or the name of one that is not deleted.
    pub instance: String,
}

impl Operation for Events {
    const PATH: &'static str = "/events";
    type Reply = Vec<EventLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let selector = Selector::parse(&self.instance);
        history::events(operator.db, &selector)
    }
}
