//! `wharf completions`.

use anyhow::{Context, Result};
use clap::Args;
use clap_complete::aot::Shell;
use clap_complete::env::Shells;
use std::env;
use std::io::stdout;

/// Print a script that completes commands, and names of instances, volumes, snapshots, buckets and backups, in your shell
#[derive(Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The variable with which a shell asks for completions.
pub const COMPLETE_VARIABLE: &str = "WHARF_COMPLETE";

impl Completions {
    pub fn run(self) -> Result<()> {
        let shells = Shells::builtins();
        let name = self.shell.to_string();
        let shell = shells
            .completer(&name)
            .context("the shell is not supported")?;
        let own = env::current_exe().context("the path of this program")?;
        let own = own.to_str().context("the path of this program")?;
        shell.write_registration(COMPLETE_VARIABLE, "wharf", "wharf", own, &mut stdout())?;
        Ok(())
    }
}
