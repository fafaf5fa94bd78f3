//! `wharf restore`.

use super::operator::OperatorCommand;
use super::user::EndAccess;
use super::{ConfigFile, runtime};
use crate::http::AdminClient;
use crate::log;
use crate::operation::{Operation, Performer};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use wharf_ground::keyring::key_in;
use wharf_operations::schema::SCHEMA;

/// The access that a backup brings back.
const BACK: &str = "access that was ended after the backup is valid again: revoked keys, ended sessions, \
                    removed passkeys and identities, earlier passwords, and users that were disabled; to \
                    end the access of all users, run `wharf user end-access --all` before the start";

/// Put a backup in the place of a database that is missing; the server must not be running
#[derive(Args)]
pub struct DatabaseRestore {
    /// A file of `wharf backup`
    file: PathBuf,
    /// Then end the access of all users, as `wharf user end-access --all` does
    #[arg(long)]
    end_access: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl OperatorCommand for DatabaseRestore {
    fn run(self) -> Result<()> {
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let runtime = runtime()?;
        let socket = config.admin_socket();
        if runtime.block_on(AdminClient::connect(&socket))?.is_some() {
            bail!("the server is running: stop it first");
        }
        wharf_secure_fs::make_dir(&config.data_dir)
            .with_context(|| format!("cannot create {}", config.data_dir.display()))?;
        let restored = wharf_db::restore(&self.file, &config.data_dir, &SCHEMA)?;
        let file = self.file.display();
        println!("restored {file} to {}", config.data_dir.display());
        if let Some(needed) = restored.key {
            match key_in(&config.data_dir) {
                Ok(keys) if keys.contains(&needed) => {}
                Ok(_) => println!(
                    "its secrets need the key with the fingerprint {needed}, which secret.key does \
                     not have: restore that file from its backup before the start"
                ),
                Err(error) => println!("{error}"),
            }
        }
        if !self.end_access {
            println!("{BACK}");
            return Ok(());
        }
        let performer = runtime.block_on(Performer::find(&config))?;
        let ended = runtime.block_on(performer.perform(&EndAccess::ALL))?;
        EndAccess::ALL.print(&ended)
    }
}
