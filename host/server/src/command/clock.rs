//! `wharf clock`.

use super::ConfigFile;
use crate::operation::clock::{AdoptClock, ShowClock};
use anyhow::Result;
use clap::{Args, Subcommand};

/// Show Wharf's time, or set it to the system's clock
#[derive(Args)]
pub struct Clock {
    #[command(subcommand)]
    command: ClockCommand,
}

#[derive(Subcommand)]
enum ClockCommand {
    /// Show Wharf's time and the system's, and whether Wharf follows the system's
    Show {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Set Wharf's time to the system's clock, which must be right: running instances are billed for
    /// the time that this adds
    Adopt {
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Clock {
    pub fn run(self) -> Result<()> {
        let state = match self.command {
            ClockCommand::Show { config } => config.perform(ShowClock {})?,
            ClockCommand::Adopt { config } => config.perform(AdoptClock {})?,
        };
        let follows = if state.refused { "refused" } else { "followed" };
        println!("wharf\t{}", state.now.to_rfc3339());
        println!("system\t{}\t{follows}", state.system.to_rfc3339());
        Ok(())
    }
}
