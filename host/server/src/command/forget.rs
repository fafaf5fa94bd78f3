//! `wharf forget`.

use super::ConfigFile;
use crate::operation::forget;
use anyhow::Result;
use clap::Args;

/// Remove an instance that will never come back, without its node
///
/// Its billing ends, and its resources, ports and addresses are free. An object that does come back is
/// removed from its node.
#[derive(Args)]
pub struct Forget {
    /// The UUID of an instance, or the name of one that is not deleted
    instance: String,
    /// Forget it even if its node may still have it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl Forget {
    pub fn run(self) -> Result<()> {
        let (instance, force) = (self.instance, self.force);
        let uuid = self.config.perform(forget::Forget { instance, force })?;
        println!("{uuid} is forgotten");
        Ok(())
    }
}
