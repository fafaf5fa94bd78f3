//! `wharf manual`, for packages.

use super::help;
use super::operator::OperatorCommand;
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Write the manual pages of all commands to a directory
#[derive(Args)]
#[command(hide = true)]
pub struct Manual {
    /// The directory
    directory: PathBuf,
}

impl OperatorCommand for Manual {
    fn run(self) -> Result<()> {
        let directory = self.directory;
        fs::create_dir_all(&directory)
            .and_then(|()| clap_mangen::generate_to(help::command(), &directory))
            .with_context(|| format!("cannot write to {}", directory.display()))
    }
}
