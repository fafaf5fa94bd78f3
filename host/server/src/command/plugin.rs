//! `wharf plugin`.

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use wharf_plugin::Review;

/// Review the policy of a driver before it is approved
#[derive(Args)]
pub struct Plugin {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Subcommand)]
enum PluginCommand {
    /// Say in words what a driver with this policy could do to a node, and what in it needs a second look
    ///
    /// No server needs to run. The exit status is 1 when the file is not a policy, and 0 with warnings.
    Check {
        /// A file such as driver-x.policy.toml, or the name of a driver that is part of Wharf
        file: PathBuf,
    },
    /// Compile the plugins that are part of Wharf, for packages
    ///
    /// A server reads `PREFIX/lib/wharf/plugins`, if its program is `PREFIX/bin/wharf` and no other account
    /// can change the files.
    #[command(hide = true)]
    Precompile {
        /// The directory for the compiled plugins
        directory: PathBuf,
    },
}

impl Plugin {
    pub fn run(self) -> Result<()> {
        let file = match self.command {
            PluginCommand::Check { file } => file,
            PluginCommand::Precompile { directory } => {
                return Ok(wharf_plugin::precompile(&directory)?);
            }
        };
        let review = review(&file)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}\n", review.words.trim_end())?;
        if let Some((name, hash)) = &review.approval {
            writeln!(out, "To approve this policy, set in the configuration:")?;
            writeln!(out, "  [plugins]\n  {name:?} = {hash:?}\n")?;
        }
        for finding in &review.findings {
            writeln!(out, "warning: {finding}")?;
        }
        let warnings = review.findings.len();
        writeln!(out, "the policy is valid, with {warnings} warnings")?;
        Ok(())
    }
}

fn review(file: &PathBuf) -> Result<Review> {
    let shown = file.display();
    if file
        .extension()
        .is_some_and(|extension| extension == "wasm")
    {
        let policy = file.with_extension("policy.toml");
        return Err(anyhow!(
            "{shown} is a driver; its policy is in {}",
            policy.display()
        ));
    }
    if !file.exists()
        && let Some(review) = file.to_str().and_then(Review::of_program)
    {
        return Ok(review);
    }
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Review::new(&name, &text).map_err(|why| anyhow!("{shown}: {why}"))
}
