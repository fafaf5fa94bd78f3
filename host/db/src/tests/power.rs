//! Power cuts, and disks that fail.

use super::backend::FakeDisk;
use super::fixture::{create, delete};
use super::{assert_consistent, assert_not_checked, ids, open};
use wharf_domain::ids::InstanceId;

/// With a million instances that check takes seconds.
#[test]
fn after_a_crash_not_all_of_the_database_is_checked() {
    let disk = FakeDisk::new();
    let db = open(&disk).unwrap();
    for _ in 0..20 {
        db.write_blocking(create()).unwrap();
        assert_not_checked(&disk.after_the_cut(0));
    }
    // Also if the power goes within a commit, or while the file is closed.
    for writes in 0..40 {
        let disk = FakeDisk::new();
        let db = open(&disk).unwrap();
        for _ in 0..3 {
            db.write_blocking(create()).unwrap();
        }
        disk.cut_after(writes);
        while writes % 2 == 0 && db.write_blocking(create()).is_ok() {}
        drop(db);
        assert_not_checked(&disk.after_the_cut(writes));
    }
}

/// The rows of a failed write may be there or not, so nothing may come after it.
#[test]
fn after_a_failed_write_there_are_no_others() {
    type Failure = fn(&FakeDisk);
    let failures: [(Failure, &str); 3] = [
        (FakeDisk::fail_once, "the power flickers"),
        (FakeDisk::fail_a_sync, "not kept"),
        (FakeDisk::panic_at_a_sync, "a commit panicked"),
    ];
    for (fail, cause) in failures {
        let disk = FakeDisk::new();
        let db = open(&disk).unwrap();
        let kept = db.write_blocking(create()).unwrap();
        fail(&disk);
        let error = db.write_blocking(delete(kept)).unwrap_err();
        let chain = error.chain().to_string();
        assert!(chain.contains(cause), "{chain}");
        assert!(!db.takes_writes());
        for _ in 0..3 {
            assert!(db.write_blocking(create()).is_err());
        }
        drop(db);
        // The caller was not told that it is deleted, nor that it is not.
        for seed in 0..20 {
            let db = open(&disk.after_the_cut(seed)).unwrap();
            let ids = ids(&db);
            assert!(ids.is_empty() || ids == [kept], "{ids:?}");
            assert_consistent(&db);
        }
    }
}

#[test]
fn a_stop_that_is_cut_off_loses_nothing() {
    for cut_after in 0..30 {
        let disk = FakeDisk::new();
        let db = open(&disk).unwrap();
        for _ in 0..5 {
            db.write_blocking(create()).unwrap();
        }
        disk.cut_after(cut_after);
        drop(db);
        let found = open(&disk.after_the_cut(cut_after)).unwrap();
        assert_eq!(ids(&found).len(), 5, "{cut_after}");
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_write() {
    let (mut all, mut cuts_in_the_middle) = (0, 0);
    for cut_after in (1..360).step_by(5) {
        let disk = FakeDisk::new();
        let db = open(&disk).unwrap();
        disk.cut_after(cut_after);
        // Each instance that was made, with the answer to its deletion if that was asked for.
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
        let found = disk.after_the_cut(cut_after);
        // The power may go again while the file is opened.
        found.cut_after(cut_after % 16);
        drop(open(&found));
        let after = open(&found.after_the_cut(cut_after + 1)).unwrap();
        let found = ids(&after);
        for (id, gone) in &made {
            let right = match gone {
                None => found.contains(id),
                Some(true) => !found.contains(id),
                Some(false) => true,
            };
            assert!(right, "cut after {cut_after} writes: {id}, {gone:?}");
        }
        assert_consistent(&after);
        after.write_blocking(create()).unwrap();
    }
    // The cuts hit what they were meant to hit.
    assert!(
        all > 100 && cuts_in_the_middle > 10,
        "{all} {cuts_in_the_middle}"
    );
}
