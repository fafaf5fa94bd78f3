//! `wharf bill`.

use super::operator::{OperatorCommand, Perform, Settings, operator_commands, timestamp};
use crate::http::AdminRouter;
use crate::operation::Operation;
use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::Column::{Number, Text, Whole};
use wharf_cli::output::{line, note, or_none, table};
use wharf_domain::error::Error;
use wharf_domain::money::{parse_usd, usd};
use wharf_domain::time::Timestamp;
use wharf_instances::Selector;
use wharf_operations::Operator;
use wharf_operations::bill::{self, BillLine};

/// Show the cost of a user's instances and the total; or correct it
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BillCommand {
    #[command(subcommand)]
    command: Option<BillSubcommand>,
    #[command(flatten)]
    show: Option<ShowBill>,
    #[command(flatten)]
    settings: Settings,
}

operator_commands! {
    pub enum BillSubcommand {
        Correct(Perform<CorrectBill>),
    }
}

impl OperatorCommand for BillCommand {
    fn run(self) -> Result<()> {
        match self.command {
            Some(command) => command.run(),
            // clap requires the address without a subcommand.
            None => self
                .settings
                .perform(self.show.context("an e-mail address is required")?),
        }
    }

    fn serve(admin: AdminRouter) -> AdminRouter {
        BillSubcommand::serve(admin.with::<ShowBill>())
    }
}

#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowBill {
    /// The user's e-mail address
    email: String,
    /// Start of the period, an ISO 8601 date or time; default: no limit
    #[arg(long, value_parser = timestamp)]
    from: Option<Timestamp>,
    /// End of the period, exclusive, an ISO 8601 date or time; default, and at most: now
    #[arg(long, value_parser = timestamp)]
    to: Option<Timestamp>,
}

impl Operation for ShowBill {
    const PATH: &'static str = "/bill";
    type Reply = bill::Bill;

    async fn run(&self, operator: Operator<'_>) -> Result<bill::Bill, Error> {
        let from = self.from.unwrap_or_default();
        // A bill reads a row for each instance that the user ever had.
        tokio::task::block_in_place(|| operator.bill(&self.email, from, self.to))
    }

    fn print(&self, bill: &bill::Bill) -> Result<()> {
        if let Some(end) = bill.cut_at {
            note(&format!(
                "--to is in the future; the bill ends now, at {}",
                end.to_rfc3339()
            ));
        }
        let columns = [
            Text("NAME"),
            Whole("INSTANCE"),
            Text("FLAVOR"),
            Text("SIZE"),
            Number("USD"),
            Text("REASON"),
        ];
        let sum = bill.lines.iter().map(|line| line.nano_usd).sum();
        let total = ["total", "", "", "", &usd(sum), ""].map(str::to_owned);
        table(columns, bill.lines.iter().flat_map(rows).chain([total]))
    }
}

/// The cost of an instance, and the corrections in it.
fn rows(cost: &BillLine) -> impl Iterator<Item = [String; 6]> {
    let size = cost.size.map(|size| {
        let (vcpus, mem, disk) = (size.n_vcpus, size.mem_gib, size.disk_size_gib);
        match vcpus {
            0 if cost.flavor.is_none() => format!("volume of {disk} GiB"),
            0 => format!("snapshot of {disk} GiB"),
            _ => format!("{vcpus} vCPU, {mem} GiB, {disk} GiB"),
        }
    });
    let of_instance = [
        or_none(cost.name.as_ref()),
        cost.uuid.clone(),
        or_none(cost.flavor.as_ref()),
        or_none(size),
        usd(cost.nano_usd),
        String::new(),
    ];
    let corrections = cost.corrections.iter().map(|correction| {
        let at = format!("correction {}", correction.at.to_rfc3339());
        let amount = format!("({})", usd(correction.nano_usd));
        ["", &at, "", "", &amount, &correction.reason].map(str::to_owned)
    });
    [of_instance].into_iter().chain(corrections)
}

/// Add an amount to the bill of an instance
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrectBill {
    /// Name or UUID of the instance; a UUID if it is deleted
    instance: String,
    /// Amount in USD, such as -1.25 in the user's favour
    #[arg(value_name = "AMOUNT", allow_negative_numbers = true, value_parser = parse_usd)]
    nano_usd: i128,
    /// The reason, shown on the bill and in the instance's events
    #[arg(long)]
    reason: String,
}

impl Operation for CorrectBill {
    const PATH: &'static str = "/bill/correct";
    type Reply = String;

    async fn run(&self, operator: Operator<'_>) -> Result<String, Error> {
        let selector = Selector::parse(&self.instance);
        let id = operator.correct_bill(&selector, self.nano_usd, &self.reason);
        Ok(id.await?.to_string())
    }

    fn print(&self, id: &String) -> Result<()> {
        line(&format!("{id}\t{}", usd(self.nano_usd)))
    }
}
