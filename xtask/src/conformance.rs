//! `cargo xtask conformance`: a black-box suite that any implementation of the interface can be
//! held against. One check for each rule, named by the section of the specification it comes from;
//! rules that decide what the specification leaves open are marked with a `+`.
//!
//! - [`check`]: what a rule is; `checks/` has them all, one file for each section or concern.
//! - [`context`]: what a check works with. [`client`]: requests and answers. `watch`: what holds
//!   for every answer, such as agreeing with the service's OpenAPI document.
//! - [`wire`]: requests and answers as bytes.
//! - `runner` runs them, [`report`] says what came of it, `own` starts a server to check.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed: what is missing is null there, and no panic"
)]

pub mod check;
mod checks;
pub mod client;
pub mod context;
pub mod openapi;
mod options;
mod own;
mod redact;
pub mod report;
mod runner;
mod session;
pub mod watch;
pub mod wire;

pub use options::Options;
pub use own::OwnServer;
pub use session::{Target, hold_against};

use crate::signals::Signals;
use crate::{build, say};
use anyhow::{Context, Result, bail};
use report::Report;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Checks the service of the options, prints the table, and fails if a rule is broken.
pub fn run(options: &Options) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    watch_for_signals(&interrupted)?;
    let report = match options.target()? {
        Some(target) => hold_against(&target, options, &interrupted)?,
        None => {
            if std::env::var_os("WHARF_BIN").is_none() {
                build::wharf()?;
            }
            let server = OwnServer::start()?;
            let report = hold_against(server.target(), options, &interrupted)?;
            server.finish()?;
            report
        }
    };
    print!("{}", report.table());
    println!("{}", report.summary());
    if let Some(file) = &options.junit {
        let written = std::fs::write(file, report.junit());
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    conclude(&report, interrupted.load(Ordering::Relaxed))
}

fn conclude(report: &Report, interrupted: bool) -> Result<()> {
    if interrupted {
        bail!("interrupted; what the checks had made was deleted");
    }
    if !report.ok() {
        bail!("the service does not conform");
    }
    Ok(())
}

/// Ctrl-C ends the checks; what they made is deleted as always.
fn watch_for_signals(interrupted: &Arc<AtomicBool>) -> Result<()> {
    let signals = Signals::catch()?;
    let interrupted = Arc::clone(interrupted);
    std::thread::spawn(move || {
        while !signals.wait(Duration::from_secs(3600)) {}
        interrupted.store(true, Ordering::Relaxed);
        say::step("Interrupted: deleting what was made");
    });
    Ok(())
}
