//! `wharf secrets`.

use super::ConfigFile;
use crate::operation::secrets::RotateSecrets;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Rotate the key of the secrets in the database
#[derive(Args)]
pub struct Secrets {
    #[command(subcommand)]
    command: SecretsCommand,
}

#[derive(Subcommand)]
enum SecretsCommand {
    /// Make a new key, encrypt all secrets again and remove the earlier key; completes a rotation that
    /// was interrupted
    Rotate {
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Secrets {
    pub fn run(self) -> Result<()> {
        let SecretsCommand::Rotate { config } = self.command;
        let rotation = config.perform(RotateSecrets {})?;
        println!(
            "secret.key has a new key with the fingerprint {}; the secrets of {} instances were \
             encrypted again",
            rotation.fingerprint, rotation.instances
        );
        for id in rotation.unreadable {
            println!("{id}: its secrets could not be decrypted and were left as they were");
        }
        Ok(())
    }
}
