//! One attempt to send a snapshot to its bucket.

use crate::Backups;
use crate::worker::{Attempted, Trouble};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use wharf_buckets::{BucketError, FORMAT, Manifest};
use wharf_db::{Rows as _, SNAPSHOTS};
use wharf_domain::backup::{Backup, Bucket, StoredBytes};
use wharf_domain::driver::{PluginError, SnapshotState, Source};
use wharf_domain::ids::SnapshotId;
use wharf_domain::instance::ResourceType;
use wharf_domain::snapshot::Snapshot;
use wharf_engine::ObjectContent;
use wharf_instances::snapshots::source_of;
use wharf_plugin::NodeDriver;

/// The pause between two looks at a transfer where the driver names none.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The time for a driver to tidy up after a transfer.
const TIDY_UP: Duration = Duration::from_secs(30);

impl Backups {
    /// Sends a snapshot that its node has.
    pub(crate) async fn send(
        &self,
        backup: &Backup,
        bucket: &Bucket,
        snapshot: SnapshotId,
    ) -> Result<Attempted, Trouble> {
        let row = self.db.read(|rows| rows.get(&SNAPSHOTS, snapshot))?;
        let row = row.filter(|row| !row.deleted);
        let row = row.ok_or_else(|| Trouble::last("its snapshot was deleted"))?;
        if let Some(reason) = row.reason() {
            return Err(Trouble::last(format!("its snapshot failed: {reason}")));
        }
        let driver = self.app.driver(&row.node);
        let driver = driver.ok_or_else(|| Trouble::last("its host is not known any more"))?;
        let (client, key) = self.open(bucket)?;
        let id = backup.id.to_string();
        // An earlier attempt may have left an upload.
        client.delete(&id).await?;
        let ObjectContent { pieces, stored } = self.app.plugins().offers().make_object(snapshot);
        let mut upload = pin!(async {
            let sent = client.upload(&id, &key, pieces).await;
            if sent.is_ok() {
                let _ = stored.send(());
            }
            sent
        });
        let mut drive = pin!(self.drive(backup, driver, source_of(&row)));
        let sent = tokio::select! {
            biased;
            sent = &mut upload => {
                let source_ended = matches!(&sent, Ok(_) | Err(BucketError::BrokenOff));
                // The driver tidies up, and knows why the content broke off. If it cannot, the end of the snapshot
                // tidies up.
                if source_ended
                    && let Ok(Err(trouble)) = timeout(TIDY_UP, drive).await
                    && sent.is_err()
                {
                    return Err(trouble);
                }
                sent?
            }
            driven = &mut drive => {
                // Without this, the upload would wait for a driver that has not begun.
                self.app.plugins().offers().drop_object(snapshot);
                match (upload.await, driven) {
                    (Err(BucketError::BrokenOff), Err(trouble)) => return Err(trouble),
                    (sent, _) => sent?,
                }
            }
        };
        let manifest = Manifest {
            format: FORMAT,
            id: id.clone(),
            instance_id: backup.of.instance.to_string(),
            name: backup.of.name.to_string(),
            resource_type: ResourceType::Container,
            flavor: backup.of.flavor.clone(),
            engine_kind: backup.of.engine_kind.clone(),
            size: backup.of.size,
            cpu_tier: backup.of.cpu_tier,
            taken_at: backup.created_at,
            tar_bytes: sent.tar_bytes,
            stored_bytes: sent.stored_bytes,
            sha256: sent.sha256,
            gone: sent.gone,
            key: bucket.wrapped_key.clone(),
            mac: String::new(),
        };
        client.put_manifest(&id, &manifest, &key).await?;
        Ok(Attempted::Sent(StoredBytes {
            content: manifest.tar_bytes,
            object: manifest.stored_bytes,
            at: self.clock.system(),
        }))
    }

    /// Calls the driver until the content has left the node.
    async fn drive(
        &self,
        backup: &Backup,
        driver: &NodeDriver,
        source: Source,
    ) -> Result<(), Trouble> {
        let mut has_begun = false;
        loop {
            let report = match driver.send_content(source).await {
                Ok(report) => report,
                Err(PluginError::RetryLater(pause)) => {
                    tokio::time::sleep(pause).await;
                    continue;
                }
                Err(error @ (PluginError::Unsupported(_) | PluginError::Conflict(_))) => {
                    return Err(Trouble::last(error.to_string()));
                }
                // The result of an earlier attempt is told once.
                Err(PluginError::Other(_)) if !has_begun => {
                    has_begun = true;
                    continue;
                }
                Err(error) => {
                    tracing::info!(backup = %backup.id, %error, "a backup breaks off");
                    return Err(Trouble::now("the host could not send the content"));
                }
            };
            match report.state {
                SnapshotState::Ready(_) => return Ok(()),
                SnapshotState::Making(words) => {
                    has_begun = true;
                    self.progress.lock().insert(backup.id, words);
                }
                SnapshotState::Failed(why) => return Err(Trouble::last(why)),
                SnapshotState::Absent | SnapshotState::InUse => {
                    return Err(Trouble::now("the host does not show the snapshot"));
                }
            }
            tokio::time::sleep(report.again.unwrap_or(LOOK_AGAIN)).await;
        }
    }
}

/// Whether the node has made a snapshot, or never will.
pub(crate) fn is_settled(snapshot: Option<&Snapshot>) -> bool {
    snapshot.is_none_or(|row| row.deleted || row.made || row.failure.is_some())
}
