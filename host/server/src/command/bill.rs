//! `wharf bill`.

use super::ConfigFile;
use crate::operation::bill;
use anyhow::Result;
use clap::Args;
use wharf_control::{history, now};
use wharf_domain::time::Timestamp;

/// Show the cost of a user's instances: UUID and USD, then the total
#[derive(Args)]
pub struct Bill {
    /// The user's e-mail address
    email: String,
    /// Start of the period, an ISO 8601 date or time; default: no limit
    #[arg(long, value_parser = timestamp)]
    from: Option<Timestamp>,
    /// End of the period, exclusive, an ISO 8601 date or time; default: now
    #[arg(long, value_parser = timestamp)]
    to: Option<Timestamp>,
    #[command(flatten)]
    config: ConfigFile,
}

impl Bill {
    pub fn run(self) -> Result<()> {
        let lines = self.config.perform(bill::Bill {
            email: self.email,
            from: self.from.unwrap_or_default(),
            to: self.to.unwrap_or_else(now),
        })?;
        for line in &lines {
            println!("{}\t{}", line.uuid, history::usd(line.nano_usd));
        }
        let sum = lines.iter().map(|line| line.nano_usd).sum();
        println!("total\t{}", history::usd(sum));
        Ok(())
    }
}

pub(super) fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("must be like 2026-11-20 or 2026-11-20T19:55:44Z")
}
