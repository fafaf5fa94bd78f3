//! `wharf events`.

use super::ConfigFile;
use crate::operation::events;
use anyhow::Result;
use clap::Args;

/// Show the events of an instance: time, event, state, size, reason
#[derive(Args)]
pub struct Events {
    /// The UUID of an instance, or the name of one that is not deleted
    instance: String,
    #[command(flatten)]
    config: ConfigFile,
}

impl Events {
    pub fn run(self) -> Result<()> {
        let instance = self.instance;
        for line in self.config.perform(events::Events { instance })? {
            println!("{line}");
        }
        Ok(())
    }
}
