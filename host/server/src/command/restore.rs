//! `wharf restore`.

use super::{ConfigFile, runtime};
use crate::http::AdminClient;
use crate::log;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use wharf_control::key_in;

/// Put a backup in the place of a database that is missing; the server must not be running
#[derive(Args)]
pub struct Restore {
    /// A file of `wharf backup`
    file: PathBuf,
    #[command(flatten)]
    config: ConfigFile,
}

impl Restore {
    pub fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let connected = runtime()?.block_on(AdminClient::connect(&config.admin_socket()))?;
        if connected.is_some() {
            bail!("the server is running: stop it first");
        }
        wharf_secure_fs::make_dir(&config.data_dir)
            .with_context(|| format!("cannot create {}", config.data_dir.display()))?;
        let restored = wharf_db::restore(&self.file, &config.data_dir)?;
        let file = self.file.display();
        println!("restored {file} to {}", config.data_dir.display());
        let Some(needed) = restored.key else {
            return Ok(());
        };
        match key_in(&config.data_dir) {
            Ok(keys) if keys.contains(&needed) => {}
            Ok(_) => println!(
                "its secrets need the key with the fingerprint {needed}, which secret.key does not \
                 have: restore that file from its backup before the start"
            ),
            Err(error) => println!("{error}"),
        }
        Ok(())
    }
}
