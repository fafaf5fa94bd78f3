//! `wharf compact`.

use super::ConfigFile;
use super::operator::OperatorCommand;
use crate::log;
use anyhow::Result;
use clap::Args;
use wharf_db::Db;
use wharf_operations::schema::SCHEMA;

/// Give the space of removed rows back to the file system; the server must not be running
#[derive(Args)]
pub struct Compact {
    #[command(flatten)]
    config: ConfigFile,
}

impl OperatorCommand for Compact {
    fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let (before, after) = Db::compact(&self.config.load()?.data_dir, &SCHEMA)?;
        println!("{before} bytes before, {after} bytes after");
        Ok(())
    }
}
