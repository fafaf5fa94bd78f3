//! `wharf fsck`.

use super::ConfigFile;
use crate::log;
use crate::server::open_db;
use anyhow::{Result, bail};
use clap::Args;
use wharf_control::Vault;

/// Check the consistency of the database; the server must not be running
#[derive(Args)]
pub struct Fsck {
    #[command(flatten)]
    config: ConfigFile,
}

impl Fsck {
    pub fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let (db, _) = open_db(&config)?;
        let mut wrong = db.fsck()?;
        match Vault::read(&config.data_dir, &db) {
            Ok(Some(vault)) => wrong.extend(vault.fsck(&db)?),
            Ok(None) => {}
            Err(error) => wrong.push(error.to_string()),
        }
        for line in &wrong {
            println!("{line}");
        }
        if !wrong.is_empty() {
            bail!("the database has {} inconsistencies", wrong.len());
        }
        println!("the database is consistent");
        Ok(())
    }
}
