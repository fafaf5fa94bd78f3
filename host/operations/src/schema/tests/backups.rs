//! Backups from before those of volumes.

use super::{TestDatabase, assert_consistent, write};
use serde::{Deserialize, Serialize};
use wharf_backups::{BACKUPS, BUCKETS};
use wharf_db::{Changes, Rows as _, Table};
use wharf_domain::backup::{
    Backup, BackupOf, BackupState, BackupTask, BackupWork, Bucket, BucketAddress, StoredBytes,
};
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::ids::{BackupId, BucketId, InstanceId, SnapshotId, UserId};
use wharf_domain::name::Name;
use wharf_domain::secret::Encrypted;
use wharf_domain::time::Timestamp;
use wharf_ground::users::USERS;

/// A backup as it was until format 11: its instance with name, flavor, class, size and engine in its middle.
type OfInstance = (InstanceId, Name, String, CpuTier, Size, String);
type Backup11 = (
    (BackupId, UserId, BucketId),
    OfInstance,
    Timestamp,
    State11,
    (Option<BackupWork>, Option<String>, Option<Timestamp>),
);
const BACKUPS_11: Table<UserId, BackupId, Backup11> = Table::bounded(b'w', 3, "", "");

#[derive(Debug, Clone, Serialize, Deserialize)]
enum State11 {
    Running(SnapshotId),
    Done(StoredBytes),
}

#[tokio::test]
async fn backups_of_earlier_versions_are_those_of_instances() {
    let text = |n: u32| format!("00000000-0000-0000-0000-{n:012}");
    let id = move |n| InstanceId::parse(&text(n)).unwrap().0;
    let (user, bucket) = (UserId(1), BucketId(id(7)));
    let size = Size {
        n_vcpus: 2,
        mem_gib: 4,
        disk_size_gib: 20,
    };
    let (name, tier) = (Name::parse("one").unwrap(), CpuTier::GeneralPurpose);
    let stored = StoredBytes {
        content: 5,
        object: 3,
        at: Timestamp(9),
    };
    let kept = Bucket {
        id: bucket,
        owner: user,
        name: name.clone(),
        address: BucketAddress {
            endpoint: String::new(),
            region: String::new(),
            bucket: String::new(),
            prefix: String::new(),
        },
        secrets: Encrypted::default(),
        wrapped_key: String::new(),
        created_at: Timestamp(1),
    };
    let work = BackupWork::new(BackupTask::Send, Timestamp(4));
    let rows = [
        (
            BackupId(id(1)),
            State11::Running(SnapshotId(id(3))),
            Some(work),
        ),
        (BackupId(id(2)), State11::Done(stored), None),
    ];
    let file = TestDatabase::new();
    let db = file.open();
    let of: OfInstance = (
        InstanceId(id(4)),
        name.clone(),
        "base".to_owned(),
        tier,
        size,
        "docker".to_owned(),
    );
    let old = of.clone();
    write(&db, move |_| {
        let mut changes = Changes::none()
            .put(&USERS, user, "ann@example.com".to_owned())
            .put(&BUCKETS, (user, bucket), kept.clone());
        for (backup, state, work) in rows.clone() {
            let rest = (work, Some("why".to_owned()), None);
            let row = (
                (backup, user, bucket),
                old.clone(),
                Timestamp(8),
                state,
                rest,
            );
            changes = changes.put(&BACKUPS_11, (user, backup), row);
        }
        changes
    })
    .await;
    drop(db);
    file.set_format(11);
    for _ in 0..2 {
        let db = file.open();
        let found = db.read(|rows| {
            let found = rows.under(&BACKUPS, &user)?;
            found.map(|row| row.map(|(_, backup)| backup)).collect()
        });
        let found: Vec<Backup> = found.unwrap();
        let states: Vec<_> = found.iter().map(|backup| backup.state.clone()).collect();
        let running = BackupState::Running(Some(SnapshotId(id(3))));
        assert_eq!(states, [running, BackupState::Done(stored)]);
        for backup in &found {
            let what = BackupOf::Instance {
                id: of.0,
                flavor: of.2.clone(),
                size,
            };
            let now = (&backup.of.what, &backup.of.name, &backup.of.engine_kind);
            assert_eq!(now, (&what, &name, &of.5));
            assert_eq!((backup.of.cpu_tier, backup.bucket), (tier, bucket));
            assert_eq!((backup.created_at, backup.planned), (Timestamp(8), None));
            assert_eq!(backup.reason.as_deref(), Some("why"));
        }
        assert_eq!(found[0].work, Some(work));
        assert_consistent(&db);
    }
}
