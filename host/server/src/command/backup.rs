//! `wharf backup`.

use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wharf_cli::output::line;
use wharf_domain::error::{Error, FieldErrors};
use wharf_operations::Operator;

/// Write the database to a new file, while the server serves or while it is stopped
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseBackup {
    /// The new file; an existing one is never replaced
    // The path is absolute, since the server may have another working directory.
    #[arg(value_parser = PathBufValueParser::new().try_map(std::path::absolute))]
    file: PathBuf,
}

/// A backup that is complete.
#[derive(Serialize, Deserialize)]
pub struct DatabaseBackedUp {
    /// Number of rows.
    rows: usize,
    /// Fingerprint of the key that its secrets need.
    key: Option<String>,
}

impl Operation for DatabaseBackup {
    const PATH: &'static str = "/backup";
    /// Enough for a large database on a slow disk.
    const TIMEOUT: Duration = Duration::from_secs(6 * 3600);
    type Reply = DatabaseBackedUp;

    async fn run(&self, operator: Operator<'_>) -> Result<DatabaseBackedUp, Error> {
        let refused = |text: String| Error::from(FieldErrors::one("file", text));
        if !self.file.is_absolute() {
            return Err(refused("must be an absolute path".to_owned()));
        }
        let (db, file) = (operator.db.clone(), self.file.clone());
        let awaited = Awaited(Arc::new(AtomicBool::new(true)));
        let goes_on = Arc::clone(&awaited.0);
        let copying = tokio::task::spawn_blocking(move || {
            db.backup(&file, || goes_on.load(Ordering::Relaxed))
        });
        let copied = copying
            .await
            .map_err(|error| Error::caused("backup", error))?;
        let copied = copied.map_err(|error| refused(error.chain()))?;
        tracing::info!(rows = copied.rows, "backup written");
        Ok(DatabaseBackedUp {
            rows: copied.rows,
            key: copied.key.map(|key| key.to_string()),
        })
    }

    fn print(&self, done: &DatabaseBackedUp) -> Result<()> {
        line(&format!("{} has {} rows", self.file.display(), done.rows))?;
        let Some(key) = &done.key else {
            return Ok(());
        };
        line(&format!(
            "its secrets need the key with the fingerprint {key}, which is in secret.key: keep a copy \
             of that file elsewhere"
        ))
    }
}

/// Ends the copying when its caller is gone.
struct Awaited(Arc<AtomicBool>);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
