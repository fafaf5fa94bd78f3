//! One attempt to send a snapshot or a volume to its bucket.

use crate::Backups;
use crate::worker::{Attempted, Trouble};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use wharf_buckets::{BucketError, FORMAT, Manifest};
use wharf_db::{Rows as _, SNAPSHOTS, VOLUMES};
use wharf_domain::backup::{Backup, BackupOf, BackupState, Bucket, StoredBytes};
use wharf_domain::driver::{PluginError, SnapshotState, Source, VolumeReport, VolumeState};
use wharf_domain::ids::{InstanceId, NodeId, VolumeId};
use wharf_domain::instance::ResourceType;
use wharf_domain::kept;
use wharf_domain::snapshot::Snapshot;
use wharf_engine::ObjectContent;
use wharf_instances::snapshots::source_of;
use wharf_plugin::NodeDriver;

/// The pause between two looks at a transfer where the driver names none.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The time for a driver to tidy up after a transfer.
const TIDY_UP: Duration = Duration::from_secs(30);

/// The content that leaves a node.
#[derive(Clone, Copy)]
enum ContentSource {
    Snapshot(Source),
    Volume(VolumeId),
}

impl ContentSource {
    /// Its id among the objects that take content.
    fn id(self) -> InstanceId {
        match self {
            Self::Snapshot(source) => source.snapshot.into(),
            Self::Volume(id) => id.into(),
        }
    }

    /// Has the node send it, or report the progress.
    async fn send(self, driver: &NodeDriver) -> Result<VolumeReport, PluginError> {
        match self {
            Self::Volume(id) => driver.send_volume(id).await,
            Self::Snapshot(source) => {
                driver
                    .send_content(source)
                    .await
                    .map(|report| VolumeReport {
                        state: match report.state {
                            SnapshotState::Ready(_) => VolumeState::Ready(()),
                            SnapshotState::Making(words) => VolumeState::Making(words),
                            SnapshotState::Failed(why) => VolumeState::Failed(why),
                            SnapshotState::Absent => VolumeState::Absent,
                            SnapshotState::InUse => VolumeState::InUse,
                        },
                        again: report.again,
                    })
            }
        }
    }
}

/// The id of a running backup's content among the objects that take content.
pub(crate) fn source_id(backup: &Backup) -> Option<InstanceId> {
    match (backup.of.volume(), &backup.state) {
        (Some(volume), BackupState::Running(_)) => Some(volume.into()),
        (None, BackupState::Running(snapshot)) => snapshot.map(InstanceId::from),
        _ => None,
    }
}

impl Backups {
    /// Sends the content of a snapshot or a volume that its node has.
    pub(crate) async fn send(
        &self,
        backup: &Backup,
        bucket: &Bucket,
    ) -> Result<Attempted, Trouble> {
        let (source, node) = self.source_of(backup)?;
        let driver = self.app.driver(&node);
        let driver = driver.ok_or_else(|| Trouble::last("its host is not known any more"))?;
        let (client, key) = self.open(bucket)?;
        let id = backup.id.to_string();
        // An earlier attempt may have left an upload.
        client.delete(&id).await?;
        let offers = self.app.plugins().offers();
        let ObjectContent { pieces, stored } = offers.make_object(source.id());
        let mut upload = pin!(async {
            let sent = client.upload(&id, &key, pieces).await;
            if sent.is_ok() {
                let _ = stored.send(());
            }
            sent
        });
        let mut drive = pin!(self.drive(backup, driver, source));
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
                offers.drop_object(source.id());
                match (upload.await, driven) {
                    (Err(BucketError::BrokenOff), Err(trouble)) => return Err(trouble),
                    (sent, _) => sent?,
                }
            }
        };
        let (instance_id, volume_id, flavor, size) = match &backup.of.what {
            BackupOf::Instance { id, flavor, size } => {
                (id.to_string(), None, flavor.clone(), *size)
            }
            BackupOf::Volume { id, size_gib } => {
                let (flavor, volume) = (String::new(), Some(id.to_string()));
                (String::new(), volume, flavor, kept::disk(*size_gib))
            }
        };
        let manifest = Manifest {
            format: FORMAT,
            id: id.clone(),
            instance_id,
            volume_id,
            name: backup.of.name.to_string(),
            resource_type: ResourceType::Container,
            flavor,
            engine_kind: backup.of.engine_kind.clone(),
            size,
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

    /// The content of a backup, and its node.
    fn source_of(&self, backup: &Backup) -> Result<(ContentSource, NodeId), Trouble> {
        if let Some(id) = backup.of.volume() {
            let row = self.db.read(|rows| rows.get(&VOLUMES, id))?;
            // One that was lost and made again has other content.
            let row = row.filter(|row| row.of.copy.is_some_and(|copy| copy.backup == backup.id));
            let row = row.ok_or_else(|| Trouble::last("its volume is gone"))?;
            return match row.reason() {
                None => Ok((ContentSource::Volume(id), row.node)),
                Some(reason) => Err(Trouble::last(reason)),
            };
        }
        let BackupState::Running(Some(snapshot)) = backup.state else {
            return Err(Trouble::last("it has no snapshot"));
        };
        let row = self.db.read(|rows| rows.get(&SNAPSHOTS, snapshot))?;
        let row = row.filter(|row| !row.deleted);
        let row = row.ok_or_else(|| Trouble::last("its snapshot was deleted"))?;
        match row.reason() {
            None => Ok((ContentSource::Snapshot(source_of(&row)), row.node)),
            Some(reason) => Err(Trouble::last(format!("its snapshot failed: {reason}"))),
        }
    }

    /// Calls the driver until the content has left the node.
    async fn drive(
        &self,
        backup: &Backup,
        driver: &NodeDriver,
        source: ContentSource,
    ) -> Result<(), Trouble> {
        let mut has_begun = false;
        loop {
            let report = match source.send(driver).await {
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
                VolumeState::Ready(()) => return Ok(()),
                VolumeState::Making(words) => {
                    has_begun = true;
                    self.progress.lock().insert(backup.id, words);
                }
                VolumeState::Failed(why) => return Err(Trouble::last(why)),
                VolumeState::Absent | VolumeState::InUse => {
                    return Err(Trouble::now("the host does not show the content"));
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
