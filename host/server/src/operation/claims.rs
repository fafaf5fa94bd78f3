//! The claims of all instances, for `wharf check`.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::Operator;
use wharf_control::check::Books;
use wharf_domain::error::Error;

/// Lists the claims.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListClaims {}

impl Operation for ListClaims {
    const PATH: &'static str = "/claims/list";
    type Reply = Books;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let kept_out = operator.inventory.kept_out().into_iter();
        Ok(Books {
            kept_out: kept_out
                .map(|kept| (kept.node.0.clone(), kept.to_string()))
                .collect(),
            ..Books::read(operator.db)?
        })
    }
}
