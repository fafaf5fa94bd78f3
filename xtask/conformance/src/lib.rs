//! A black-box suite that checks any implementation of the REST interface, by HTTP alone.
//!
//! Each rule has one check, and names its section of the specification. A `+` marks this project's
//! decisions on open points of the specification.
//!
//! - [`check`]: the type of a check; `checks/` has all checks, one file for each section or concern.
//! - [`context`]: the environment of a check. [`client`]: requests and responses. [`watch`]: rules for
//!   every response, such as agreement with the service's OpenAPI document.
//! - [`wire`]: requests and responses as bytes.
//! - `runner` runs the checks, [`report`] prints the results, `own` starts a server to check.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed, and a missing member is null there"
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
pub use session::{Target, check_service};

use anyhow::{Context, Result, bail};
use report::Report;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wharf_testkit::progress;
use wharf_testkit::signals::Signals;

/// Checks the service of the options, prints the table, and fails if a rule is broken.
pub fn run(options: &Options) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    watch_for_signals(&interrupted)?;
    let report = match options.target()? {
        Some(target) => check_service(&target, options, &interrupted)?,
        None => {
            let server = OwnServer::start()?;
            let report = check_service(server.target(), options, &interrupted)?;
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
        bail!("interrupted; the instances of the checks were deleted");
    }
    if !report.ok() {
        bail!("the service does not conform");
    }
    Ok(())
}

/// Ends the checks on a signal. Their instances are deleted.
fn watch_for_signals(interrupted: &Arc<AtomicBool>) -> Result<()> {
    let signals = Signals::catch()?;
    let interrupted = Arc::clone(interrupted);
    std::thread::spawn(move || {
        while !signals.wait(Duration::from_secs(3600)) {}
        interrupted.store(true, Ordering::Relaxed);
        progress::step("Interrupted: deleting the instances of the checks");
    });
    Ok(())
}
