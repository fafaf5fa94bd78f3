//! The cost of a user's instances, and corrections of it.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::bill;
use wharf_control::{Operator, Selector};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// Shows it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bill {
    pub email: String,
    /// Start of the period in milliseconds since 1970.
    pub from: Timestamp,
    /// End of the period, exclusive; now at most.
    pub to: Option<Timestamp>,
}

impl Operation for Bill {
    const PATH: &'static str = "/bill";
    type Reply = bill::Bill;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        // A bill reads a row for each instance that the user ever had.
        tokio::task::block_in_place(|| operator.bill(&self.email, self.from, self.to))
    }
}

/// Adds an amount to the bill of an instance.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrectBill {
    /// Name or UUID.
    pub instance: String,
    pub nano_usd: i128,
    pub reason: String,
}

impl Operation for CorrectBill {
    const PATH: &'static str = "/bill/correct";
    type Reply = String;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let selector = Selector::parse(&self.instance);
        let id = operator.correct_bill(&selector, self.nano_usd, &self.reason);
        Ok(id.await?.to_string())
    }
}
