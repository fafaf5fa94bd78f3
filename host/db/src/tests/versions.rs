//! Versions of rows and lists.

use super::backend::FakeDisk;
use super::fixture::{create, delete, intend};
use super::open;
use crate::{Changes, Read};
use wharf_domain::ids::UserId;
use wharf_domain::instance::Intent;

#[test]
fn a_change_raises_the_versions_of_the_row_and_of_its_owner_s_list() {
    let db = open(&FakeDisk::new()).unwrap();
    let owner = UserId(1);
    let list = || db.read(|rows| rows.owner_version(owner)).unwrap();
    assert_eq!(list(), 0);
    let id = db.write_blocking(create()).unwrap();
    let row = || db.read(|rows| rows.instance(id)).unwrap().unwrap();
    assert_eq!((row().version, list()), (1, 1));
    let written = db.write_blocking(intend(id, Intent::Stop)).unwrap();
    assert_eq!(written, row());
    assert_eq!((row().version, list()), (2, 2));
    // It leaves the list with its deletion, so its removal changes nothing there.
    db.write_blocking(intend(id, Intent::Delete)).unwrap();
    assert_eq!((row().version, list()), (3, 3));
    db.write_blocking(delete(id)).unwrap();
    assert_eq!(list(), 3);
    db.write_blocking(create()).unwrap();
    assert_eq!(list(), 4);
    assert_eq!(
        db.read(|rows| rows.owner_version(UserId(2))).unwrap(),
        0,
        "another owner's list"
    );
}

#[test]
fn a_row_is_not_written_over_one_that_was_not_read() {
    let db = open(&FakeDisk::new()).unwrap();
    let id = db.write_blocking(create()).unwrap();
    let stale = db.read(|rows| rows.instance(id)).unwrap().unwrap();
    db.write_blocking(intend(id, Intent::Stop)).unwrap();
    let written = db.write_blocking(move |_| Ok(((), Changes::none().put_instance(stale.clone()))));
    assert!(written.is_err());
    let row = db.read(|rows| rows.instance(id)).unwrap().unwrap();
    assert_eq!((row.intent, row.version), (Intent::Stop, 2));
}

#[test]
fn only_what_is_committed_is_counted() {
    let db = open(&FakeDisk::new()).unwrap();
    let before = db.commits();
    db.write_blocking(|_| Ok(((), Changes::none()))).unwrap();
    assert_eq!(db.commits(), before);
    db.write_blocking(create()).unwrap();
    assert_eq!(db.commits(), before + 1);
}
