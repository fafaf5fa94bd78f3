//! The measurements, in the order of the table.

mod create;
mod engine;
mod idle;
mod peers;
mod placement;
mod plugin;
mod read;
mod start;

use crate::Options;
use crate::table::Table;
use anyhow::{Context, Result};

type Measurement = fn(&Options, &mut Table) -> Result<()>;

const ALL: [(&str, Measurement); 8] = [
    ("read", read::run),
    ("create", create::run),
    ("engine", engine::run),
    ("placement", placement::run),
    ("plugin", plugin::run),
    ("start", start::run),
    ("idle", idle::run),
    ("peers", peers::run),
];

/// Runs those that the options choose.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    for (name, measure) in ALL {
        let chosen = options.only.as_ref();
        if chosen.is_none_or(|text| name.contains(text.as_str())) {
            xtask::say::step(&format!("Measuring: {name}"));
            measure(options, table).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}
