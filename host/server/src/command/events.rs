//! `wharf events`, the operator's with `--config` and the user's without.

use super::ConfigFile;
use super::remote::{self, Connection};
use crate::operation::events;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Show the events of your instances: time, name, event, state, message
///
/// With --config, the operator's view of one instance: time, event, state, size, actor, reason.
#[derive(Args)]
pub struct Events {
    /// Name or UUID of an instance; default: all of yours
    #[arg(add = remote::instances())]
    instance: Option<String>,
    /// Show events as they happen, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Show events after the one with this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Configuration file (TOML) of the server: ask it as the operator
    #[arg(long, value_name = "FILE", requires = "instance", conflicts_with_all = ["follow", "after", "profile", "output"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

impl Events {
    pub fn run(self) -> Result<()> {
        let instance = self.instance.as_deref();
        let (Some(config), Some(instance)) = (self.config, instance) else {
            let shown = remote::events(&self.connection, instance, self.after, self.follow);
            return remote::block_on(shown);
        };
        let instance = instance.to_owned();
        let config = ConfigFile {
            config: Some(config),
        };
        for line in config.perform(events::Events { instance })? {
            println!("{line}");
        }
        Ok(())
    }
}
