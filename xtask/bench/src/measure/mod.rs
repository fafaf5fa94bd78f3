//! The measurements, in the order of the table.

mod backup;
mod bystander;
mod create;
mod engine;
mod gateway;
mod idle;
mod page;
mod peers;
mod read;
mod scale;
mod snapshot;
mod start;
mod tunnel;

use crate::Options;
use crate::table::Table;
use anyhow::{Context, Result};
use wharf_testkit::progress;

type Measurement = fn(&Options, &mut Table) -> Result<()>;

const ALL: [(&str, Measurement); 13] = [
    ("engine", engine::run),
    ("page", page::run),
    ("snapshot", snapshot::run),
    ("backup", backup::run),
    ("tunnel", tunnel::run),
    ("peers", peers::run),
    ("read", read::run),
    ("create", create::run),
    ("start", start::run),
    ("idle", idle::run),
    ("gateway", gateway::run),
    ("bystander", bystander::run),
    ("scale", scale::run),
];

/// Runs the measurements that the options select.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    for (name, measure) in ALL {
        let only = options.only.as_ref();
        if only.is_none_or(|text| name.contains(text.as_str())) {
            progress::step(&format!("Measuring: {name}"));
            measure(options, table).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}
