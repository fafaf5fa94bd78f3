//! The key of the secrets.

use super::Operation;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_control::{Operator, Rotation};
use wharf_domain::error::Error;

/// Makes a new key and encrypts all secrets again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateSecrets {}

impl Operation for RotateSecrets {
    const PATH: &'static str = "/secrets/rotate";
    /// Enough for millions of instances.
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Reply = Rotation;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let vault = operator.vault().await;
        let vault = vault.map_err(|error| Error::caused("cannot open the key file", error))?;
        vault.rotate(operator.db).await
    }
}
