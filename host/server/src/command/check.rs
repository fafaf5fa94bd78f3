//! `wharf check`.

use super::operator::OperatorCommand;
use super::{ConfigFile, counted, runtime};
use crate::check;
use crate::log;
use anyhow::{Result, bail};
use clap::Args;
use wharf_operations::check::Severity;

/// Judge a configuration and its nodes before a start; nothing is changed
///
/// The exit status is 1 with a finding of severity error, and 0 with warnings alone.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    config: ConfigFile,
}

impl OperatorCommand for Check {
    fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let findings = runtime()?.block_on(check::all(&config))?;
        if let Some(certificate) = check::certificate(&config) {
            println!("{certificate}");
        }
        let mut errors = 0;
        for finding in &findings {
            errors += usize::from(finding.severity == Severity::Error);
            println!("{}: {finding}", finding.severity);
        }
        let warnings = counted(findings.len() - errors, "warning");
        if errors > 0 {
            let errors = counted(errors, "error");
            bail!("the configuration has {errors} and {warnings}");
        }
        println!("the configuration has no errors and {warnings}");
        Ok(())
    }
}
