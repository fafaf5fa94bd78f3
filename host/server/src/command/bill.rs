//! `wharf bill`.

use super::ConfigFile;
use super::remote::output::{note, table};
use crate::operation::bill;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use wharf_domain::money::{parse_usd, usd};
use wharf_domain::time::Timestamp;

/// Show the cost of a user's instances and the total; or correct it
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
    #[command(flatten)]
    config: ConfigFile,
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
        let bill = self.config.perform(bill::Bill {
            // clap requires it without a subcommand.
            email: self.email.context("an e-mail address is required")?,
            from: self.from.unwrap_or_default(),
            to: self.to,
        })?;
        if let Some(end) = bill.cut_at {
            note(&format!(
                "--to is in the future; the bill ends now, at {}",
                end.to_rfc3339()
            ));
        }
        let sum = bill.lines.iter().map(|line| line.nano_usd).sum();
        let mut rows = Vec::new();
        for line in bill.lines {
            let name = line.name.unwrap_or_else(|| "-".to_owned());
            let flavor = line.flavor.unwrap_or_else(|| "-".to_owned());
            let size = line.size.map_or("-".to_owned(), |size| {
                let (vcpus, mem, disk) = (size.n_vcpus, size.mem_gib, size.disk_size_gib);
                format!("{vcpus} vCPU, {mem} GiB, {disk} GiB")
            });
            let cost = usd(line.nano_usd);
            rows.push([name, line.uuid, flavor, size, cost, String::new()]);
            rows.extend(line.corrections.into_iter().map(|correction| {
                let at = correction.at.to_rfc3339();
                let amount = format!("({})", usd(correction.nano_usd));
                [
                    String::new(),
                    format!("correction {at}"),
                    String::new(),
                    String::new(),
                    amount,
                    correction.reason,
                ]
            }));
        }
        let empty = String::new;
        rows.push([
            "total".to_owned(),
            empty(),
            empty(),
            empty(),
            usd(sum),
            empty(),
        ]);
        table(
            ["NAME", "INSTANCE", "FLAVOR", "SIZE", "USD", "REASON"],
            &rows,
        )
    }
}

pub(super) fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("must be like 2026-11-20 or 2026-11-20T19:55:44Z")
}
