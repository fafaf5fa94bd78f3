//! A backup of the database.

use super::Operation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wharf_control::Operator;
use wharf_domain::error::{Error, FieldErrors};

/// Writes the last commit to a new file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// An absolute path, since the server may have another working directory.
    pub file: PathBuf,
}

/// A backup that is complete.
#[derive(Debug, Serialize, Deserialize)]
pub struct BackedUp {
    /// Number of rows.
    pub rows: usize,
    /// Fingerprint of the key that its secrets need.
    pub key: Option<String>,
}

impl Operation for Backup {
    const PATH: &'static str = "/backup";
    /// Enough for a large database on a slow disk.
    const TIMEOUT: Duration = Duration::from_secs(6 * 3600);
    type Reply = BackedUp;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let refused = |text: String| Error::from(FieldErrors::one("file", text));
        if !self.file.is_absolute() {
            return Err(refused("must be an absolute path".to_owned()));
        }
        let (db, file) = (operator.db.clone(), self.file);
        let wanted = Wanted(Arc::new(AtomicBool::new(true)));
        let goes_on = Arc::clone(&wanted.0);
        let copying = tokio::task::spawn_blocking(move || {
            db.backup(&file, || goes_on.load(Ordering::Relaxed))
        });
        let copied = copying
            .await
            .map_err(|error| Error::caused("backup", error))?;
        let copied = copied.map_err(|error| refused(error.chain()))?;
        tracing::info!(rows = copied.rows, "backup written");
        Ok(BackedUp {
            rows: copied.rows,
            key: copied.key.map(|key| key.to_string()),
        })
    }
}

/// Ends the copying when its caller is gone.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
