//! What is in the journal and not yet in the file.

use super::backend::{Disk, Disks};
use super::fixture::{create, delete};
use super::{ids, open, open_up_to};
use crate::db::apply::Tables;
use crate::db::journal::{LIMIT, Period};
use crate::db::{Change, Changes, Db, Read, View};
use crate::domain::ids::UserId;
use std::time::Duration;

/// The file without its journal.
fn alone(disks: &Disks) -> Disks {
    Disks {
        file: disks.copy().file,
        journal: Disk::default(),
    }
}

/// Records of one length, so that older ones begin where one that was written over them ends.
fn say(db: &Db, word: u32) {
    let email = format!("{word:06}");
    let user = move |_: &View<'_>| {
        let user = Change::PutUser(UserId(7), email.clone());
        Ok(((), Changes::none().with(user)))
    };
    db.write_blocking(user).unwrap();
}

fn last_word(disks: &Disks) -> Option<u32> {
    let db = open(&disks.after_the_cut(0)).unwrap();
    let email = db.read(|rows| rows.email_of(UserId(7))).unwrap();
    email.map(|email| email.parse().unwrap())
}

#[test]
fn a_commit_is_in_the_journal_and_later_in_the_file() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    (0..20).for_each(|word| say(&db, word));
    assert_eq!(last_word(&alone(&disks.after_the_cut(0))), None);
    assert_eq!(last_word(&disks), Some(19));
    // In quiet, the file gets it.
    let mut looks = 0;
    while last_word(&alone(&disks.after_the_cut(0))) != Some(19) {
        looks += 1;
        assert!(looks < 1_000, "it never gets it");
        std::thread::sleep(Duration::from_millis(20));
    }
    // What comes then is in the journal again, over the records that were there.
    say(&db, 20);
    assert_eq!(last_word(&alone(&disks.after_the_cut(0))), Some(19));
    assert_eq!(last_word(&disks), Some(20));
}

#[test]
fn what_an_older_copy_undid_does_not_come_back() {
    let disks = Disks::new();
    drop(open(&disks).unwrap());
    let copy = disks.copy();
    let db = open(&disks).unwrap();
    (0..5).for_each(|word| say(&db, word));
    drop(db);
    // The copy is put back, beside a journal that is cleared and no more than that.
    let file = copy.file;
    let journal = disks.journal;
    let disks = Disks { file, journal };
    let db = open(&disks).unwrap();
    say(&db, 100);
    assert_eq!(last_word(&disks), Some(100));
}

#[test]
fn a_stop_that_is_cut_off_loses_nothing() {
    for cut_after in 0..60 {
        let disks = Disks::new();
        let db = open(&disks).unwrap();
        (0..5).for_each(|word| say(&db, word));
        disks.cut_after(cut_after);
        drop(db);
        assert_eq!(last_word(&disks), Some(4), "{cut_after}");
    }
}

/// What it could not write may be there or not, and so nothing may come after it.
#[test]
fn a_journal_that_failed_once_is_not_gone_on_with() {
    for fail in [Disks::fail_once, Disks::fail_a_sync] {
        let disks = Disks::new();
        let db = open(&disks).unwrap();
        let kept = db.write_blocking(create()).unwrap();
        fail(&disks);
        assert!(db.write_blocking(delete(kept)).is_err());
        assert!(!db.takes_writes());
        for _ in 0..3 {
            assert!(db.write_blocking(create()).is_err());
        }
        drop(db);
        // Nobody was told that it is deleted, nor that it is not.
        for seed in 0..20 {
            let db = open(&disks.after_the_cut(seed)).unwrap();
            let ids = ids(&db);
            assert!(ids.is_empty() || ids == [kept], "{ids:?}");
            assert_eq!(db.fsck().unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_checkpoint_that_panics_ends_writing_and_loses_nothing() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    (0..5).for_each(|word| say(&db, word));
    disks.panic_at_a_sync();
    let mut looks = 0;
    while db.takes_writes() {
        looks += 1;
        assert!(looks < 1_000, "there was none");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(db.write_blocking(create()).is_err());
    assert_eq!(ids(&db), []);
    drop(db);
    assert_eq!(last_word(&disks), Some(4));
}

#[test]
fn damage_in_the_middle_is_told_of() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    (0..5).for_each(|word| say(&db, word));
    // Before it is brought up to date.
    let crashed = disks.after_the_cut(0);
    let place = |of: &[u8]| (0..).find(|at| crashed.journal.holds(*at, of)).unwrap();
    // Heads and records, the first and others.
    for at in 0..=place(b"000003") {
        let bytes = crashed.copy();
        let damage = match bytes.journal.holds(at, b"x") {
            true => b"y",
            false => b"x",
        };
        bytes.journal.put(at, damage);
        let refused = open(&bytes).err().unwrap();
        assert!(refused.contains("damaged"), "{at}: {refused}");
    }
    // The last of them may have been cut short.
    crashed.journal.put(place(b"000004"), b"x");
    assert_eq!(last_word(&crashed), Some(3));
}

#[test]
fn a_full_journal_begins_anew() {
    let disks = Disks::new();
    let db = open_up_to(&disks, 4 << 10).unwrap();
    let mut written: Vec<_> = (0..50)
        .map(|_| db.write_blocking(create()).unwrap())
        .collect();
    written.sort_by_key(|id| id.0);
    let file_alone = ids(&open(&alone(&disks.after_the_cut(0))).unwrap());
    assert!(file_alone.len() > 40, "{} of 50", file_alone.len());
    assert_eq!(ids(&open(&disks.after_the_cut(0)).unwrap()), written);
    // Something that is longer than it can become goes to the file.
    let long = "x".repeat(5 << 10);
    let user = move |_: &View<'_>| {
        let user = Change::PutUser(UserId(7), long.clone());
        Ok(((), Changes::none().with(user)))
    };
    db.write_blocking(user).unwrap();
    let crashed = open(&alone(&disks.after_the_cut(0))).unwrap();
    let email = crashed.read(|rows| rows.email_of(UserId(7)));
    assert_eq!(email.unwrap().unwrap().len(), 5 << 10);
    assert_eq!(ids(&crashed), written);
}

#[test]
fn the_last_word_holds_crash_after_crash() {
    let mut disks = Disks::new();
    let mut last = None;
    for turn in 0..60 {
        let db = open_up_to(&disks, [LIMIT, 4 << 10][turn / 30]).unwrap();
        assert_eq!(last_word(&disks), last, "turn {turn}");
        for word in 0..(turn * 7 % 40) {
            let word = u32::try_from(turn * 100 + word).unwrap();
            last = Some(word);
            say(&db, word);
        }
        disks = disks.after_the_cut(0);
    }
}

#[test]
fn where_it_cannot_become_longer_the_file_takes_over() {
    let disks = Disks::new();
    disks.journal.limit(100);
    let db = open(&disks).unwrap();
    db.write_blocking(create()).unwrap();
    assert!(db.takes_writes());
    assert_eq!(
        ids(&open(&alone(&disks.after_the_cut(0))).unwrap()).len(),
        1
    );
}

#[test]
fn nothing_is_left_in_it_when_it_is_closed() {
    let disks = Disks::new();
    let db = open(&disks).unwrap();
    let backup = disks.copy();
    db.write_blocking(create()).unwrap();
    drop(db);
    assert_eq!(ids(&open(&alone(&disks)).unwrap()).len(), 1);
    // An older copy of the file can be put back, without a word about the journal.
    let file = backup.file;
    let journal = disks.journal;
    assert_eq!(ids(&open(&Disks { file, journal }).unwrap()), []);
}

#[test]
fn an_older_copy_of_the_file_is_not_taken_for_what_the_journal_goes_on_from() {
    let disks = Disks::new();
    drop(open(&disks).unwrap());
    let backup = disks.copy();
    // Long enough for some checkpoints; then it crashes.
    let db = open_up_to(&disks, 4 << 10).unwrap();
    for _ in 0..20 {
        db.write_blocking(create()).unwrap();
    }
    let crashed = disks.after_the_cut(0);
    let mixed = Disks {
        file: backup.file.clone(),
        journal: crashed.journal.clone(),
    };
    let refused = open(&mixed).err().unwrap();
    assert!(refused.contains("older copy"), "{refused}");
    // Nothing is lost by that: both are as they were.
    let together = Disks {
        file: crashed.file,
        journal: mixed.journal,
    };
    assert_eq!(ids(&open(&together).unwrap()).len(), 20);
}

#[test]
fn the_journal_of_another_database_is_nothing() {
    let (one, other) = (Disks::new(), Disks::new());
    let db = open(&one).unwrap();
    db.write_blocking(create()).unwrap();
    let file = other.file;
    let journal = one.after_the_cut(0).journal;
    let other = open(&Disks { file, journal }).unwrap();
    assert_eq!(ids(&other), []);
    other.write_blocking(create()).unwrap();
}

/// After an error nobody knows whether the record is there. Either way it is whole.
#[test]
fn a_journal_that_fails_ends_all_writes() {
    for cut_after in 0..3 {
        let disks = Disks::new();
        let db = open(&disks).unwrap();
        db.write_blocking(create()).unwrap();
        disks.cut_after(cut_after);
        let acknowledged = (0..2)
            .take_while(|_| db.write_blocking(create()).is_ok())
            .count();
        assert!(acknowledged < 2 && !db.takes_writes(), "{cut_after}");
        assert!(db.write_blocking(create()).is_err());
        assert_eq!(ids(&db).len(), 1 + acknowledged);
        drop(db);
        let after = open(&disks.after_the_cut(cut_after)).unwrap();
        assert!((1 + acknowledged..=2 + acknowledged).contains(&ids(&after).len()));
        assert_eq!(after.fsck().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn the_format_before_there_was_a_journal_is_brought_up_to_date() {
    let disks = Disks::new();
    drop(open(&disks).unwrap());
    let open_file = || redb::Builder::new().create_with_backend(disks.file.clone());
    let set = |format| {
        let file = open_file().unwrap();
        let txn = file.begin_write().unwrap();
        let mut tables = Tables::open(&txn).unwrap();
        tables.set_format(format).unwrap();
        let (epoch, session) = (0, 0);
        tables.set_period(Period { epoch, session }).unwrap();
        drop(tables);
        txn.commit().unwrap();
    };
    // A journal that another Wharf has left beside it goes on from another state.
    let db = open(&disks).unwrap();
    say(&db, 1);
    let journal = disks.after_the_cut(0).journal;
    drop(db);
    set(1);
    let file = disks.file.clone();
    let beside = open(&Disks { file, journal });
    assert!(beside.err().unwrap().contains("another state"));
    drop(open(&disks).unwrap());
    let file = open_file().unwrap();
    let txn = file.begin_write().unwrap();
    let tables = Tables::open(&txn).unwrap();
    assert_eq!(tables.format().unwrap(), Some(2));
    drop(tables);
    drop((txn, file));
    // And one of the future is refused.
    set(3);
    assert!(open(&disks).err().unwrap().contains("format 3"));
}
