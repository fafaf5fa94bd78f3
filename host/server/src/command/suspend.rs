//! `wharf suspend` and `wharf resume`.

use super::ConfigFile;
use crate::operation::suspend::{self, ListSuspensions};
use anyhow::Result;
use clap::Args;
use wharf_control::Suspended;

/// Stop an instance or all of a user, and keep the owner from starting them; or list suspensions
///
/// The data stays, storage is billed, and the owner may delete them. Without arguments: list the
/// suspensions.
#[derive(Args)]
pub struct Suspend {
    /// The UUID or the name of an instance
    #[arg(conflicts_with = "user", requires = "reason")]
    instance: Option<String>,
    /// The e-mail address of a user: all instances stop, and the user can create none
    #[arg(long, value_name = "EMAIL", requires = "reason")]
    user: Option<String>,
    /// Words that the owner reads
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    config: ConfigFile,
}

impl Suspend {
    pub fn run(self) -> Result<()> {
        let (Some(of), Some(reason)) = (suspended(self.instance, self.user), self.reason) else {
            for line in self.config.perform(ListSuspensions {})? {
                let (Suspended::Instance(of) | Suspended::User(of)) = line.of;
                println!("{of}\t{}\t{}", line.since, line.reason);
            }
            return Ok(());
        };
        for id in self.config.perform(suspend::Suspend { of, reason })? {
            println!("{id} is suspended");
        }
        Ok(())
    }
}

/// End the suspension of an instance or a user
///
/// Instances stay stopped until their owner starts them.
#[derive(Args)]
pub struct Resume {
    /// The UUID or the name of an instance
    #[arg(conflicts_with = "user", required_unless_present = "user")]
    instance: Option<String>,
    /// The e-mail address of a user
    #[arg(long, value_name = "EMAIL")]
    user: Option<String>,
    #[command(flatten)]
    config: ConfigFile,
}

impl Resume {
    pub fn run(self) -> Result<()> {
        let Some(of) = suspended(self.instance, self.user) else {
            return Ok(());
        };
        for id in self.config.perform(suspend::Resume { of })? {
            println!("{id} may be started again");
        }
        Ok(())
    }
}

fn suspended(instance: Option<String>, user: Option<String>) -> Option<Suspended> {
    let instance = instance.map(Suspended::Instance);
    instance.or(user.map(Suspended::User))
}
