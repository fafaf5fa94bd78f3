//! The content of backups, for instances that are made from them.

use crate::Backups;
use crate::rows::{BUCKETS, backup};
use async_trait::async_trait;
use std::io;
use tokio::sync::{mpsc, watch};
use wharf_buckets::BucketError;
use wharf_db::Rows as _;
use wharf_domain::backup::{Backup, Bucket, ContentOf};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_engine::ObjectSource;
use wharf_instances::content::{ContentFailure, ContentStore, OpenContent};

/// Pieces between a bucket and an engine.
const PIECES: usize = 8;

impl Backups {
    fn located(&self, owner: UserId, of: &ContentOf) -> Result<Option<(Backup, Bucket)>, Error> {
        self.db.read(|rows| {
            let found = match backup(rows, owner, of.backup) {
                Err(Error::Missing(_)) => return Ok(None),
                found => found?,
            };
            let bucket = rows.get(&BUCKETS, (owner, found.bucket))?;
            Ok(bucket.map(|bucket| (found, bucket)))
        })
    }
}

#[async_trait]
impl ContentStore for Backups {
    async fn open(&self, owner: UserId, of: &ContentOf) -> Result<OpenContent, ContentFailure> {
        let located = self.located(owner, of).map_err(|error| ContentFailure {
            words: error.chain().to_string(),
            is_final: false,
        })?;
        let (_, bucket) = located.ok_or_else(|| ContentFailure {
            words: "the backup was deleted".to_owned(),
            is_final: true,
        })?;
        let (client, key) = Self::open(self, &bucket).map_err(failure)?;
        let id = of.backup.to_string();
        let manifest = client.manifest(&id, &key).await.map_err(failure)?;
        let mut content = client.open(&manifest, &key).await.map_err(failure)?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let (failed, told) = watch::channel(None);
        tokio::spawn(async move {
            while let Some(piece) = content.recv().await {
                let piece = piece.map_err(|error| {
                    let words = error.to_string();
                    failed.send_replace(Some(failure(error)));
                    io::Error::other(words)
                });
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        let source = ObjectSource {
            gone: manifest.gone,
            pieces,
        };
        Ok(OpenContent {
            source,
            failure: told,
        })
    }
}

/// A failure of content, in words for the user.
fn failure(error: BucketError) -> ContentFailure {
    ContentFailure {
        words: format!("the backup cannot be read: {error}"),
        is_final: error.is_final(),
    }
}
