//! When writes share commits.

use super::backend::Disk;
use super::fixture::create;
use super::{ids, open};
use crate::db::Db;
use crate::db::writer::LINGER;
use std::time::Duration;

#[test]
fn a_crowd_is_several_writes_in_a_commit_and_passes() {
    let db = open(&Disk::new()).unwrap();
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
    let db = open(&Disk::new()).unwrap();
    std::thread::sleep(2 * LINGER);
    // Without a clock: who waits for a time panics.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(db.write_later(create())).unwrap();
    assert_eq!(ids(&db).len(), 1);
}
