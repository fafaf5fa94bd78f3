//! `wharf secrets`.

use super::operator::{Perform, operator_commands};
use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_cli::output::line;
use wharf_domain::error::Error;
use wharf_operations::Operator;
use wharf_operations::secrets::{Rotation, rotate};

operator_commands! {
    pub enum Secrets {
        Rotate(Perform<RotateSecrets>),
    }
}

/// Make a new key, encrypt all secrets again and remove the earlier key; completes a rotation that was
/// interrupted
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateSecrets {}

impl Operation for RotateSecrets {
    const PATH: &'static str = "/secrets/rotate";
    /// Enough for millions of instances.
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Reply = Rotation;

    async fn run(&self, operator: Operator<'_>) -> Result<Rotation, Error> {
        let vault = operator.vault().await;
        let vault = vault.map_err(|error| Error::caused("cannot open the key file", error))?;
        rotate(&vault, operator.db).await
    }

    fn print(&self, rotation: &Rotation) -> Result<()> {
        line(&format!(
            "secret.key has a new key with the fingerprint {}; the secrets of {} instances were \
             encrypted again",
            rotation.fingerprint, rotation.instances
        ))?;
        rotation.unreadable.iter().try_for_each(|id| {
            line(&format!(
                "{id}: its secrets could not be decrypted and were left as they were"
            ))
        })
    }
}
