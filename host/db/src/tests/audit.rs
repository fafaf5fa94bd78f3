//! The chain of the audit log, with records changed and removed.

use super::backend::FakeDisk;
use super::{SCHEMA, open};
use crate::rows::AuditRow;
use crate::{AuditHead, Changes, Db, Draft, ReadRows, Rows as _, tables as t};
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;

fn record(n: i64) -> AuditRecord {
    AuditRecord {
        at: Timestamp(n),
        origin: Origin::operator(),
        operation: "test".to_owned(),
        owner: Some(UserId(1)),
        instance: None,
        subject: Some(n.to_string()),
        result: "done".to_owned(),
    }
}

/// A database with ten records, seven of them in one commit.
fn ten() -> Db {
    let db = open(&FakeDisk::new()).unwrap();
    for n in 0..3 {
        db.write_blocking(move |_| Ok(((), Changes::none().audit(record(n)))))
            .unwrap();
    }
    let many = || (3..10).map(record).fold(Changes::none(), Changes::audit);
    db.write_blocking(move |_| Ok(((), many()))).unwrap();
    db
}

/// Changes rows as somebody would who can write the file.
fn tamper(db: &Db, change: impl FnOnce(&mut Draft<'_>)) {
    let txn = db.file.begin_write().unwrap();
    let mut rows = Draft::open(&txn, &SCHEMA).unwrap();
    change(&mut rows);
    drop(rows);
    txn.commit().unwrap();
}

fn row(db: &Db, number: u64) -> AuditRow {
    let rows = ReadRows::open(&db.file).unwrap();
    rows.get(&t::AUDIT, number).unwrap().unwrap()
}

fn wrong(db: &Db, known: Option<AuditHead>) -> Vec<String> {
    db.verify_audit(known).unwrap().1
}

#[test]
fn an_untouched_log_verifies_and_is_small() {
    let db = ten();
    let (head, found) = db.verify_audit(None).unwrap();
    assert_eq!((head.number, found), (10, vec![]));
    assert!(db.check().is_empty());
    let early = AuditHead {
        number: 4,
        hash: row(&db, 4).hash,
    };
    assert!(wrong(&db, Some(early)).is_empty());
    assert!(
        row(&db, 4).record.len() < 64,
        "{}",
        row(&db, 4).record.len()
    );
}

#[test]
fn changed_removed_and_cut_records_are_found() {
    let db = ten();
    let end = db.verify_audit(None).unwrap().0;
    let mut changed = row(&db, 5);
    *changed.record.last_mut().unwrap() ^= 1;
    tamper(&db, |rows| drop(rows.put(&t::AUDIT, 5, &changed).unwrap()));
    assert!(wrong(&db, None)[0].contains("record 5"));
    let db = ten();
    tamper(&db, |rows| drop(rows.remove(&t::AUDIT, 5).unwrap()));
    assert!(wrong(&db, None)[0].contains("records 5 to 5 are missing"));
    // A cut end only shows to those who know the end.
    let db = ten();
    tamper(&db, |rows| drop(rows.remove(&t::AUDIT, 10).unwrap()));
    assert!(wrong(&db, None).is_empty());
    assert!(wrong(&db, Some(end))[0].contains("record 10"));
}
