//! `wharf backup`.

use super::ConfigFile;
use crate::operation::backup;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// Write the database to a new file, while the server serves or while it is stopped
#[derive(Args)]
pub struct Backup {
    /// The new file; an existing one is never replaced
    file: PathBuf,
    #[command(flatten)]
    config: ConfigFile,
}

impl Backup {
    pub fn run(self) -> Result<()> {
        let file = std::path::absolute(&self.file).context("FILE")?;
        let name = file.display().to_string();
        let done = self.config.perform(backup::Backup { file })?;
        println!("{name} has {} rows", done.rows);
        if let Some(key) = done.key {
            println!(
                "its secrets need the key with the fingerprint {key}, which is in secret.key: keep \
                 a copy of that file elsewhere"
            );
        }
        Ok(())
    }
}
