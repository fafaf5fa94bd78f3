//! `wharf fsck`.

use super::ConfigFile;
use crate::log;
use crate::server::open_db;
use anyhow::{Result, bail};
use clap::Args;

/// Check the consistency of the database; the server must not be running
#[derive(Args)]
pub struct Fsck {
    #[command(flatten)]
    config: ConfigFile,
}

impl Fsck {
    pub fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let wrong = open_db(&self.config.load()?)?.0.fsck()?;
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
