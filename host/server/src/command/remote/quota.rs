//! `wharf quota`.

use super::connection::Connection;
use super::output::{field, json, table};
use anyhow::Result;
use clap::Args;

/// Show your quota and its use
#[derive(Args)]
pub struct Quota {
    #[command(flatten)]
    connection: Connection,
}

impl Quota {
    pub async fn run(self) -> Result<()> {
        let quota = self
            .connection
            .client()?
            .get_quota()
            .send()
            .await?
            .into_value();
        if self.connection.is_json() {
            return json(&quota);
        }
        let amounts = quota.as_object().into_iter().flatten();
        let rows: Vec<_> = amounts
            .map(|(name, amount)| [name.clone(), field(amount, "used"), field(amount, "limit")])
            .collect();
        table(["QUANTITY", "USED", "LIMIT"], &rows)
    }
}
