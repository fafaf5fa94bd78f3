//! `wharf fsck`.

use super::operator::OperatorCommand;
use super::{ConfigFile, runtime};
use crate::drivers::compare_engines;
use crate::log;
use crate::server::inspect_db;
use anyhow::{Result, bail};
use clap::Args;
use wharf_db::Inspected;
use wharf_ground::vault::Vault;
use wharf_operations::schema::SCHEMA;
use wharf_operations::secrets;

/// Check the database on a copy; the server must not be running
#[derive(Args)]
pub struct Fsck {
    /// Also compare the database with the engines of all nodes
    #[arg(long)]
    engines: bool,
    /// Show the changes that would repair the database
    #[arg(long)]
    repair: bool,
    /// With `--repair`: make the changes
    #[arg(long, requires = "repair")]
    yes: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl OperatorCommand for Fsck {
    fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let Inspected { db, pages } = inspect_db(&config)?;
        let findings = db.check();
        let repairable = findings.iter().filter(|f| f.is_repairable()).count();
        let mut wrong = pages.len() + findings.len();
        for line in &pages {
            println!("{line}");
        }
        for finding in &findings {
            let is_marked = self.repair && finding.is_repairable();
            let mark = if is_marked { " (repairable)" } else { "" };
            println!("{}{mark}", finding.text);
        }
        let secrets = match Vault::read(&config.data_dir, &db) {
            Ok(Some(vault)) => {
                secrets::unreadable(&vault, &db).unwrap_or_else(|e| vec![e.to_string()])
            }
            Ok(None) => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
        let engines = if self.engines {
            runtime()?.block_on(compare_engines(&config, &db))?
        } else {
            Vec::new()
        };
        for line in secrets.iter().chain(&engines) {
            println!("{line}");
        }
        wrong += secrets.len() + engines.len();
        drop(db);
        if self.repair && !self.yes && repairable > 0 {
            println!("`wharf fsck --repair --yes` would mend {repairable} of them");
        }
        if self.repair && self.yes && repairable > 0 {
            if !pages.is_empty() {
                bail!("a database with damaged pages is not repaired: restore a backup");
            }
            let repaired = wharf_db::repair(&config.data_dir, &SCHEMA)?;
            println!("repaired {repaired} of {wrong} inconsistencies");
            wrong = wrong.saturating_sub(repaired);
        }
        if wrong > 0 {
            bail!("the database has {wrong} inconsistencies");
        }
        println!("the database is consistent");
        Ok(())
    }
}
