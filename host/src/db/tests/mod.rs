//! The database under concurrency, panics and power cuts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod backend;
mod fixture;
mod journal;
mod versions;

use super::journal::LIMIT;
use super::recover::recover;
use super::writer::LINGER;
use super::{Changes, Db, Read, migrate};
use crate::domain::error::Error;
use crate::domain::ids::InstanceId;
use backend::Disks;
use fixture::{create, delete, inventory};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

fn open(disks: &Disks) -> Result<Db, String> {
    open_up_to(disks, LIMIT)
}

/// With a journal that becomes so long.
fn open_up_to(disks: &Disks, limit: u64) -> Result<Db, String> {
    let file = redb::Builder::new()
        .create_with_backend(disks.file.clone())
        .map_err(|e| e.to_string())?;
    migrate::initialise(&file).map_err(|e| e.to_string())?;
    let closed = migrate::is_closed(&file, true).map_err(|e| e.to_string())?;
    let journal = recover(&file, Box::new(disks.journal.clone()), limit, closed);
    let journal = journal.map_err(|e| e.to_string())?;
    Db::on(file, journal, inventory()).map_err(|e| e.to_string())
}

fn ids(db: &Db) -> Vec<InstanceId> {
    let mut ids = Vec::new();
    db.read(|rows| rows.each_instance(|i| ids.push(i.id)))
        .unwrap();
    ids
}

#[test]
fn many_writers_share_commits_and_no_port_is_given_twice() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    let before = disks.syncs();
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| db.write_blocking(create()).unwrap());
        }
    });
    assert_eq!(ids(&db).len(), 64);
    assert_eq!(db.fsck().unwrap(), Vec::<String>::new());
    let syncs = disks.syncs() - before;
    assert!(syncs < 64, "{syncs} syncs for 64 writes");
}

#[test]
fn a_crowd_is_several_writes_in_a_commit_and_passes() {
    let db = open(&Disks::new()).unwrap();
    for _ in 0..10 {
        db.write_blocking(create()).unwrap();
    }
    assert!(!db.is_crowded());
    let crowded = (0..20).any(|_| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| db.write_blocking(create()).unwrap());
            }
        });
        db.is_crowded()
    });
    assert!(crowded);
    until_quiet(&db);
}

fn until_quiet(db: &Db) {
    let mut looks = 0;
    while db.is_crowded() {
        looks += 1;
        assert!(looks < 5_000, "it stays crowded");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_write_in_no_hurry_that_comes_alone_waits_for_none_to_share_a_commit_with() {
    let db = open(&Disks::new()).unwrap();
    std::thread::sleep(2 * LINGER);
    // Without a clock: who waits for a time panics.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(db.write_later(create())).unwrap();
    assert_eq!(ids(&db).len(), 1);
}

/// On their own threads, on the writer's, in a hurry or not: nobody is forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_of_tasks_are_all_done_whoever_commits_them() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    // With nobody else writing, no request comes to take this along.
    db.write_later(create()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..12 {
        let db = db.clone();
        tasks.spawn(async move {
            for turn in 0..20 {
                match (n + turn) % 3 {
                    0 => drop(db.write_later(create()).await.unwrap()),
                    1 => {
                        let refused = db.write(|_| Err::<((), Changes), _>(Error::NotFound));
                        assert!(matches!(refused.await, Err(Error::NotFound)));
                    }
                    _ => drop(db.write(create()).await.unwrap()),
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let refused = (0..12 * 20).filter(|n| (n % 20 + n / 20) % 3 == 1).count();
    assert_eq!(ids(&db).len(), 1 + 12 * 20 - refused);
    assert_eq!(db.fsck().unwrap(), Vec::<String>::new());
    until_quiet(&db);
    // Who writes alone does so on its own thread.
    for n in 0..100 {
        let wrote = db.write(|_| Ok((std::thread::current().id(), Changes::none())));
        assert_eq!(wrote.await.unwrap(), std::thread::current().id(), "{n}");
    }
}

/// The next start could need its journal.
#[test]
fn the_last_user_closes_the_database() {
    let disks = Disks::new();
    let is_closed = || {
        let file = redb::Builder::new().create_with_backend(disks.copy().file);
        migrate::is_closed(&file.unwrap(), true).unwrap()
    };
    for _ in 0..2 {
        let db = open(&disks).unwrap();
        assert!(!is_closed());
        drop(db);
        assert!(is_closed());
        let db = open(&disks).unwrap();
        db.write_blocking(create()).unwrap();
        assert!(!is_closed());
        drop(db);
        assert!(is_closed());
    }
}

/// With a million instances that takes seconds.
#[test]
fn after_a_crash_not_all_of_the_database_is_checked() {
    let disks = Disks::new();
    // The second fills its journal, so that the file gets a use case's own commit.
    for limit in [LIMIT, 4 << 10] {
        let db = open_up_to(&disks, limit).unwrap();
        for _ in 0..20 {
            db.write_blocking(create()).unwrap();
            assert_not_checked(&disks.after_the_cut(0));
        }
    }
    // Also if the power goes while it commits to the file, or closes it.
    for writes in 0..40 {
        let disks = Disks::new();
        let db = open_up_to(&disks, 4 << 10).unwrap();
        for _ in 0..3 {
            db.write_blocking(create()).unwrap();
        }
        disks.cut_after(writes);
        while writes % 2 == 0 && db.write_blocking(create()).is_ok() {}
        drop(db);
        assert_not_checked(&disks.after_the_cut(writes));
    }
}

fn assert_not_checked(disks: &Disks) {
    let reopened = redb::Builder::new()
        .set_repair_callback(|_| panic!("all of it is checked"))
        .create_with_backend(disks.file.clone());
    drop(reopened.unwrap());
}

#[test]
fn a_use_case_that_fails_or_panics_costs_only_itself() {
    let disks = Disks::new();
    let db = Arc::new(open(&disks).unwrap());
    std::thread::scope(|scope| {
        for n in 0..48 {
            let db = &db;
            scope.spawn(move || match n % 3 {
                0 => drop(db.write_blocking(create()).unwrap()),
                1 => {
                    let refused = db.write_blocking(|view| {
                        create()(view)?;
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
    assert_eq!(db.fsck().unwrap(), Vec::<String>::new());
    // The writer goes on, and the file is none the worse.
    db.write_blocking(create()).unwrap();
    assert_not_checked(&disks.after_the_cut(0));
    drop(db);
    assert_not_checked(&disks);
}

#[test]
fn the_files_are_for_their_owner_alone() {
    let dir = std::env::temp_dir().join(format!("wharf-db-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let paths = ["wharf.redb", "wharf.journal"].map(|name| dir.join(name));
    let modes = || {
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
        paths.each_ref().map(|path| mode(path) & 0o777)
    };
    drop(migrate::open(&dir).unwrap());
    assert_eq!(modes(), [0o600; 2]);
    // As something else has made them.
    for path in &paths {
        std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    drop(migrate::open(&dir).unwrap());
    assert_eq!(modes(), [0o600; 2]);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A copy of the database alone, made while Wharf runs or after a crash.
#[test]
fn a_journal_that_is_missing_is_not_made_anew() {
    let dir = std::env::temp_dir().join(format!("wharf-db-alone-{}", std::process::id()));
    let (one, copy) = (dir.join("one"), dir.join("copy"));
    for dir in [&one, &copy] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let db = Db::open(&one, inventory()).unwrap();
    let id = db.write_blocking(create()).unwrap();
    let files = ["wharf.redb", "wharf.journal"];
    std::fs::copy(one.join(files[0]), copy.join(files[0])).unwrap();
    let refused = Db::open(&copy, inventory()).err().unwrap().to_string();
    assert!(refused.contains("wharf.journal: missing"), "{refused}");
    for file in files {
        std::fs::copy(one.join(file), copy.join(file)).unwrap();
    }
    assert_eq!(ids(&Db::open(&copy, inventory()).unwrap()), [id]);
    // One that was closed needs none.
    drop(db);
    std::fs::remove_file(one.join(files[1])).unwrap();
    assert_eq!(ids(&Db::open(&one, inventory()).unwrap()), [id]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_disk_that_fails_once_is_told_of() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    db.write_blocking(create()).unwrap();
    let refused = db.write_blocking(|_| Err::<((), Changes), _>(Error::NotFound));
    assert!(refused.is_err() && db.takes_writes());
    disks.cut_after(0);
    assert!(db.write_blocking(create()).is_err());
    assert!(!db.takes_writes());
    // What was read before still is.
    assert_eq!(ids(&db).len(), 1);
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_write() {
    let (mut all, mut cuts_in_the_middle) = (0, 0);
    for cut_after in (1..120).step_by(2) {
        let disks = Disks::new();
        // With checkpoints between, and without.
        let limit = [LIMIT, 8 << 10][cut_after / 2 % 2];
        let cut_after = cut_after as u64;
        let db = open_up_to(&disks, limit).unwrap();
        disks.cut_after(cut_after);
        // Whether each that was made was asked to go, and whether that was answered.
        let made: Vec<(InstanceId, Option<bool>)> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    let db = &db;
                    scope.spawn(move || {
                        let written = (0..12).map_while(|turn| {
                            let id = db.write_blocking(create()).ok()?;
                            let gone = || db.write_blocking(delete(id)).is_ok();
                            Some((id, (turn % 3 == 0).then(gone)))
                        });
                        written.collect::<Vec<_>>()
                    })
                })
                .collect();
            writers
                .into_iter()
                .flat_map(|w| w.join().unwrap())
                .collect()
        });
        drop(db);
        all += made.len();
        cuts_in_the_middle += u32::from((1..48).contains(&made.len()));
        let found = disks.after_the_cut(cut_after);
        // It may go again while what the journal has is written to the file.
        found.cut_after(cut_after % 16);
        drop(open_up_to(&found, limit));
        let after = open_up_to(&found.after_the_cut(cut_after + 1), limit).unwrap();
        let found = ids(&after);
        for (id, gone) in &made {
            let right = match gone {
                None => found.contains(id),
                Some(true) => !found.contains(id),
                Some(false) => true,
            };
            assert!(right, "cut after {cut_after} writes: {id}, {gone:?}");
        }
        assert_eq!(
            after.fsck().unwrap(),
            Vec::<String>::new(),
            "cut after {cut_after}"
        );
        after.write_blocking(create()).unwrap();
    }
    // It was tested what was meant to be tested.
    assert!(
        all > 100 && cuts_in_the_middle > 10,
        "{all} {cuts_in_the_middle}"
    );
}
