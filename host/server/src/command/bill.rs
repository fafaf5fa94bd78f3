//! `wharf bill`.

use super::ConfigFile;
use crate::operation::bill;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use wharf_domain::money::{parse_usd, usd};
use wharf_domain::time::Timestamp;

/// Show the cost of a user's instances: UUID and USD, then the total; or correct it
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bill {
    #[command(subcommand)]
    command: Option<BillCommand>,
    /// The user's e-mail address
    #[arg(required = true)]
    email: Option<String>,
    /// Start of the period, an ISO 8601 date or time; default: no limit
    #[arg(long, value_parser = timestamp)]
    from: Option<Timestamp>,
    /// End of the period, exclusive, an ISO 8601 date or time; default, and at most: now
    #[arg(long, value_parser = timestamp)]
    to: Option<Timestamp>,
    // No `ConfigFile`, because `correct` takes its own.
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum BillCommand {
    /// Add an amount to the bill of an instance
    Correct {
        /// Name or UUID of the instance; a UUID if it is deleted
        instance: String,
        /// Amount in USD, such as -1.25 in the user's favour
        #[arg(allow_negative_numbers = true, value_parser = parse_usd)]
        amount: i128,
        /// The reason, shown on the bill and in the instance's events
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Bill {
    pub fn run(self) -> Result<()> {
        if let Some(BillCommand::Correct {
            instance,
            amount,
            reason,
            config,
        }) = self.command
        {
            let id = config.perform(bill::CorrectBill {
                instance,
                nano_usd: amount,
                reason,
            })?;
            println!("{id}\t{}", usd(amount));
            return Ok(());
        }
        // clap requires both without a subcommand.
        let config = self.config.context("--config is required")?;
        let lines = ConfigFile { config }.perform(bill::Bill {
            email: self.email.context("an e-mail address is required")?,
            from: self.from.unwrap_or_default(),
            to: self.to,
        })?;
        for line in &lines {
            println!("{}\t{}", line.uuid, usd(line.nano_usd));
            for correction in &line.corrections {
                println!(
                    "\tcorrection\t{}\t{}\t{}",
                    correction.at.to_rfc3339(),
                    usd(correction.nano_usd),
                    correction.reason
                );
            }
        }
        let sum = lines.iter().map(|line| line.nano_usd).sum();
        println!("total\t{}", usd(sum));
        Ok(())
    }
}

pub(super) fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("must be like 2026-11-20 or 2026-11-20T19:55:44Z")
}
