//! The database under concurrency, panics and power cuts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod audit;
mod backend;
mod damage;
mod fixture;
mod formats;
mod migration;
mod pages;
mod power;
mod tables;
mod versions;

use super::commit::{CommitTimes, WriteAllowance};
use super::pages::{Checked, Pages};
use super::writer::QUEUE;
use super::{Changes, Db, DbBounds, DbSchema, Read, View, open};
use backend::FakeDisk;
use fixture::{Taken, create, create_in, delete};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use tokio::task::JoinSet;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::time::Timestamp;

/// The tables of this crate alone.
pub(crate) static SCHEMA: DbSchema = DbSchema {
    tables: &[],
    steps: &[],
};

fn open(disk: &FakeDisk) -> Result<Db, String> {
    open_with(disk, &Taken::default())
}

fn open_with(disk: &FakeDisk, taken: &Taken) -> Result<Db, String> {
    open_as(disk, taken, &SCHEMA, WriteAllowance::default())
}

fn open_as(
    disk: &FakeDisk,
    taken: &Taken,
    schema: &'static DbSchema,
    room: WriteAllowance,
) -> Result<Db, String> {
    let file = database(disk, |_| {}).map_err(|e| e.to_string())?;
    open::initialise(Path::new("disk"), &file, schema, true).map_err(|e| e.to_string())?;
    let clock = Box::new(|| CommitTimes::agreed(Timestamp(3)));
    Db::on(file, schema, Box::new(taken.clone()), clock, room).map_err(|e| e.to_string())
}

/// Opens the file of a disk, which is of a format before checksums if it begins as redb's files do.
fn database(
    disk: &FakeDisk,
    repairs: impl Fn(&mut redb::RepairSession) + 'static,
) -> Result<redb::Database, redb::DatabaseError> {
    let mut builder = redb::Builder::new();
    builder.set_repair_callback(repairs);
    if disk.begins_with(b"redb") {
        return builder.create_with_backend(disk.clone());
    }
    let pages = Pages::open(disk.clone()).map_err(redb::StorageError::Io)?;
    builder.create_with_backend(Checked(pages))
}

impl Db {
    /// [`Self::write`] for threads.
    fn write_blocking<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(self.write(decide))
    }
}

fn ids(db: &Db) -> Vec<InstanceId> {
    let mut ids = Vec::new();
    db.read(|rows| rows.each_instance(|i| ids.push(i.id)))
        .unwrap();
    ids
}

fn ports(db: &Db) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    let read = db.read(|rows| {
        rows.each_claim(|_, claim| {
            ports.insert(claim.ssh_port);
        })
    });
    read.unwrap();
    ports
}

fn assert_consistent(db: &Db) {
    let wrong: Vec<_> = db.check().into_iter().map(|f| f.text).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("wharf-db-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn assert_not_checked(disk: &FakeDisk) {
    drop(database(disk, |_| panic!("all of it is checked")).unwrap());
}

#[test]
fn many_writers_share_commits_and_no_port_is_given_twice() {
    let (disk, taken) = (FakeDisk::new(), Taken::default());
    let db = open_with(&disk, &taken).unwrap();
    let before = disk.syncs();
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| db.write_blocking(create_in(&taken)).unwrap());
        }
    });
    assert_eq!(ids(&db).len(), 64);
    assert_consistent(&db);
    assert_eq!(taken.ports().len(), 64);
    let syncs = disk.syncs() - before;
    // A commit of its own takes two.
    assert!(syncs < 2 * 64, "{syncs} syncs for 64 writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_of_many_tasks_are_all_done() {
    let db = open(&FakeDisk::new()).unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..12 {
        let db = db.clone();
        tasks.spawn(async move {
            for turn in 0..20 {
                if (n + turn) % 3 == 1 {
                    let refused = db.write(|_| Err::<((), Changes), _>(Error::NotFound));
                    assert!(matches!(refused.await, Err(Error::NotFound)));
                } else {
                    db.write(create()).await.unwrap();
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(ids(&db).len(), 12 * 20 * 2 / 3);
    assert_consistent(&db);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_wait_for_a_place_in_the_queue() {
    let db = open(&FakeDisk::new()).unwrap();
    let (begun, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let (db, begun, go) = (db.clone(), Arc::clone(&begun), Arc::clone(&go));
        async move {
            let decide = move |_: &View<'_>| {
                begun.wait();
                go.wait();
                Ok(((), Changes::none()))
            };
            db.write(decide).await
        }
    });
    // The writer is in the first use case, so the queue only fills.
    tokio::task::block_in_place(|| begun.wait());
    let more = 100;
    for _ in 0..QUEUE + more {
        let db = db.clone();
        tasks.spawn(async move { db.write(|_| Ok(((), Changes::none()))).await });
    }
    let places = i64::try_from(QUEUE).unwrap();
    while db.metrics().queued.get() < places {
        tokio::task::yield_now().await;
    }
    assert_eq!(db.metrics().queued.get(), places);
    tokio::task::block_in_place(|| go.wait());
    let done = tasks.join_all().await;
    assert_eq!(done.len(), 1 + QUEUE + more);
    assert!(done.iter().all(Result::is_ok));
    assert_eq!(db.metrics().queued.get(), 0);
}

#[test]
fn a_use_case_that_fails_or_panics_costs_only_itself() {
    let (disk, taken) = (FakeDisk::new(), Taken::default());
    let db = Arc::new(open_with(&disk, &taken).unwrap());
    std::thread::scope(|scope| {
        for n in 0..48 {
            let (db, taken) = (&db, &taken);
            scope.spawn(move || match n % 3 {
                0 => drop(db.write_blocking(create_in(taken)).unwrap()),
                1 => {
                    let refused = db.write_blocking(|view| {
                        drop(create()(view)?);
                        Err::<((), Changes), _>(Error::NotFound)
                    });
                    assert!(matches!(refused, Err(Error::NotFound)));
                }
                _ => {
                    let broken: Result<(), _> = db.write_blocking(|_| panic!("on purpose"));
                    assert!(matches!(broken, Err(Error::Internal(_))));
                }
            });
        }
    });
    assert_eq!(ids(&db).len(), 16);
    assert_consistent(&db);
    // The projection of a failed batch is undone.
    assert_eq!(taken.ports(), ports(&db));
    // The writer goes on, and the file needs no check.
    db.write_blocking(create()).unwrap();
    assert_not_checked(&disk.after_the_cut(0));
    drop(db);
    assert_not_checked(&disk);
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let dir = directory("modes");
    let path = dir.join("wharf.redb");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    drop(open::open(&dir, 0, &SCHEMA).unwrap());
    assert_eq!(mode(), 0o600);
    // As something else has made it.
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    drop(open::open(&dir, 0, &SCHEMA).unwrap());
    assert_eq!(mode(), 0o600);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_last_user_closes_the_database() {
    let dir = directory("close");
    for count in 1..4 {
        let db = Db::open(
            &dir,
            &SCHEMA,
            Box::new(Taken::default()),
            Box::new(|| CommitTimes::agreed(Timestamp(3))),
            DbBounds::default(),
        )
        .unwrap();
        let other = db.clone();
        drop(db);
        other.write_blocking(create()).unwrap();
        let refused = Db::open(
            &dir,
            &SCHEMA,
            Box::new(Taken::default()),
            Box::new(|| CommitTimes::agreed(Timestamp(3))),
            DbBounds::default(),
        )
        .err()
        .unwrap();
        assert!(refused.to_string().contains("in use"), "{refused}");
        assert_eq!(ids(&other).len(), count);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_disk_that_fails_once_ends_all_writes() {
    let disk = FakeDisk::new();
    let db = open(&disk).unwrap();
    db.write_blocking(create()).unwrap();
    let refused = db.write_blocking(|_| Err::<((), Changes), _>(Error::NotFound));
    assert!(refused.is_err() && db.takes_writes());
    disk.cut_after(0);
    assert!(db.write_blocking(create()).is_err());
    assert!(!db.takes_writes());
    // The rows can still be read.
    assert_eq!(ids(&db).len(), 1);
}

#[test]
fn a_projection_follows_every_change_of_a_claim_and_none_that_failed() {
    let (disk, taken) = (FakeDisk::new(), Taken::default());
    let db = open_with(&disk, &taken).unwrap();
    let [kept, gone] = [(); 2].map(|()| db.write_blocking(create_in(&taken)).unwrap());
    db.write_blocking(delete(gone)).unwrap();
    let before = taken.ports();
    assert_eq!((before.len(), &before), (1, &ports(&db)));
    // The last of these changes fails, after the claims were projected.
    let fails = db.write_blocking(move |view| {
        let stale = view.rows.instance(kept)?.ok_or(Error::NotFound)?;
        let mut claim = view.rows.claim(kept)?.ok_or(Error::NotFound)?;
        claim.ssh_port += 7;
        let changes = Changes::none()
            .put_claim(kept, claim)
            .drop_instance(kept)
            .put_instance(stale);
        Ok(((), changes))
    });
    assert!(fails.is_err());
    assert_eq!(taken.ports(), before);
    drop(db);
    let loaded = Taken::default();
    drop(open_with(&disk, &loaded).unwrap());
    assert_eq!(loaded.ports(), before);
}

/// A value that panics on the writer's thread when it is dropped there.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if std::thread::current().name() == Some("db-writer") {
            panic!("on purpose");
        }
    }
}

#[tokio::test]
async fn the_end_of_the_writer_counts_as_a_loss_of_the_database() {
    let db = open(&FakeDisk::default()).unwrap();
    assert!(db.takes_writes());
    // The caller goes away before the decision, so the writer drops the answer.
    let (gone, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let write = db.write(move |_| {
        let _ = wait.lock().unwrap().recv();
        Ok((PanicsOnDrop, Changes::none()))
    });
    drop(tokio::time::timeout(std::time::Duration::ZERO, write).await);
    drop(gone);
    db.lost().await;
    assert!(!db.takes_writes());
}
