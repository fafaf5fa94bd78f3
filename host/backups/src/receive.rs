//! The content of backups, for instances that are made from them.

use crate::Backups;
use crate::rows::{BUCKETS, backup, complete, complete_of_volume};
use async_trait::async_trait;
use std::io;
use tokio::sync::{mpsc, watch};
use wharf_buckets::BucketError;
use wharf_db::{Rows as _, View};
use wharf_domain::backup::{Backup, Bucket, ContentOf};
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::volume::Volume;
use wharf_engine::ObjectSource;
use wharf_instances::content::{ContentFailure, ContentStore, OpenContent};

/// Pieces between a bucket and an engine.
const PIECES: usize = 8;

const GIB: u64 = 1 << 30;
/// The room for the files of an image, which the size of a disk does not count on every engine, GiB.
const IMAGE_GIB: u64 = 16;

/// The most bytes of the content of a disk. The owner of a bucket can make a small object of a large content, which
/// engines may store in full before they compare it with the size. Small files are larger in an archive than on a disk.
fn most_bytes(disk_gib: u32) -> u64 {
    (2 * u64::from(disk_gib) + IMAGE_GIB) * GIB
}

impl Backups {
    /// The bucket of a backup, if there is one.
    fn bucket_of(&self, owner: UserId, of: &ContentOf) -> Result<Option<Bucket>, Error> {
        self.db.read(|rows| {
            let found = match backup(rows, owner, of.backup) {
                Err(Error::Missing(_)) => return Ok(None),
                found => found?,
            };
            rows.get(&BUCKETS, (owner, found.bucket))
        })
    }
}

#[async_trait]
impl ContentStore for Backups {
    fn backup(
        &self,
        view: &View<'_>,
        of: &Instance,
        wanted: Option<BackupId>,
    ) -> Result<Option<Backup>, Error> {
        complete(view.rows, of, wanted)
    }

    fn backup_of_volume(&self, view: &View<'_>, of: &Volume) -> Result<Option<Backup>, Error> {
        complete_of_volume(view.rows, of)
    }

    async fn open(
        &self,
        owner: UserId,
        of: &ContentOf,
        disk_gib: u32,
    ) -> Result<OpenContent, ContentFailure> {
        let bucket = self.bucket_of(owner, of).map_err(|error| {
            tracing::error!(error = %error.chain(), "cannot read the row of a backup");
            ContentFailure {
                words: "Wharf cannot read its own row of the backup".to_owned(),
                is_final: false,
            }
        })?;
        let bucket = bucket.ok_or_else(|| ContentFailure {
            words: "the backup was deleted".to_owned(),
            is_final: true,
        })?;
        let (client, key) = Self::open(self, &bucket).map_err(failure)?;
        let id = of.backup.to_string();
        let manifest = client.manifest(&id, &key).await.map_err(failure)?;
        if manifest.tar_bytes > most_bytes(disk_gib) {
            let gib = manifest.tar_bytes.div_ceil(GIB);
            return Err(ContentFailure {
                words: format!(
                    "the backup has {gib} GiB, which a disk of {disk_gib} GiB never held"
                ),
                is_final: true,
            });
        }
        let mut content = client.open(&manifest, &key).await.map_err(failure)?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let (failed, watched) = watch::channel(None);
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
            failure: watched,
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
