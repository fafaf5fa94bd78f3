//! A file of the earlier format is moved to the present one.

use super::backend::FakeDisk;
use super::fixture::{create, intend};
use super::{SCHEMA, assert_consistent, ids, open};
use crate::codec::encode;
use crate::open::META;
use crate::{Changes, Read, Rows as _, migrate as old};
use redb::{Database, ReadableDatabase};
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Intent, Progress};

/// A file of this version: a user, a settled-by-nobody instance, one to delete, and one that is
/// stopped.
fn present() -> (FakeDisk, [InstanceId; 3]) {
    let disk = FakeDisk::new();
    let db = open(&disk).unwrap();
    let user = |_: &crate::View<'_>| {
        let email = "ann@example.com".to_owned();
        Ok(((), Changes::none().put(&old::USERS_5, UserId(1), email)))
    };
    db.write_blocking(user).unwrap();
    let made = [(); 3].map(|()| db.write_blocking(create()).unwrap());
    db.write_blocking(intend(made[1], Intent::Delete)).unwrap();
    db.write_blocking(intend(made[2], Intent::Stop)).unwrap();
    (disk, made)
}

/// The rows of a database as the earlier version wrote them, closed or not.
fn as_before(rows: &FakeDisk, closed: bool) -> FakeDisk {
    let disk = FakeDisk::new();
    let file = redb::Builder::new().create_with_backend(disk.clone());
    let file = file.unwrap();
    let db = open(rows).unwrap();
    let txn = file.begin_write().unwrap();
    db.read(|rows| {
        let mut meta = txn.open_table(META).unwrap();
        for (key, number) in [("format", 2), ("epoch", 7), ("session", 5)] {
            meta.insert(key, number).unwrap();
        }
        meta.insert("closed", if closed { 5 } else { 0 }).unwrap();
        meta.insert("next_seq", 4).unwrap();
        let installation = rows.installation()?.as_u128();
        let mut table = txn.open_table(old::INSTALLATION).unwrap();
        table.insert((), installation).unwrap();
        let email = rows.get(&old::USERS_5, UserId(1))?.unwrap();
        let mut table = txn.open_table(old::USERS).unwrap();
        table.insert(1, email.as_str()).unwrap();
        let mut table = txn.open_table(old::EMAILS).unwrap();
        table.insert(email.as_str(), 1).unwrap();
        let mut table = txn.open_table(old::KEYS).unwrap();
        table.insert("a key", &[1, 2][..]).unwrap();
        rows.each_instance(|instance| {
            let (id, number) = (instance.id, instance.id.0.as_u128());
            let bytes = encode(&instance).unwrap();
            // The version, which the earlier rows do not have, is the last byte.
            let (_, bytes) = bytes.split_last().unwrap();
            let mut table = txn.open_table(old::INSTANCES).unwrap();
            table.insert(number, bytes).unwrap();
            let spec = encode(&rows.provisioning_spec(id).unwrap().unwrap()).unwrap();
            let mut table = txn.open_table(old::PROVISIONING_SPECS).unwrap();
            table.insert(number, spec.as_slice()).unwrap();
            let claim = rows.claim(id).unwrap().unwrap();
            let bytes = encode(&claim).unwrap();
            let mut table = txn.open_table(old::CLAIMS).unwrap();
            table.insert(number, bytes.as_slice()).unwrap();
            let mut table = txn.open_table(old::ON_NODE).unwrap();
            table.insert((claim.node.0.as_str(), number), ()).unwrap();
            let mut table = txn.open_table(old::PENDING).unwrap();
            if instance.progress == Progress::Pending {
                table.insert(number, ()).unwrap();
            }
            if instance.intent != Intent::Delete {
                let mut table = txn.open_table(old::NAMES).unwrap();
                table.insert(instance.name.as_str(), number).unwrap();
                let mut table = txn.open_table(old::OWNED).unwrap();
                table.insert((1, instance.seq), number).unwrap();
            }
            let mut table = txn.open_table(old::EVENTS).unwrap();
            for (n, event) in (0..).zip(rows.events(id).unwrap()) {
                let bytes = encode(&event).unwrap();
                table.insert((number, n), bytes.as_slice()).unwrap();
            }
            let mut table = txn.open_table(old::LEDGER).unwrap();
            for (n, entry) in (0..).zip(rows.ledger(id).unwrap()) {
                let bytes = encode(&entry).unwrap();
                table.insert((number, n), bytes.as_slice()).unwrap();
            }
        })
    })
    .unwrap();
    txn.commit().unwrap();
    drop(file);
    disk
}

fn database(disk: &FakeDisk) -> Database {
    super::database(disk, |_| {}).unwrap()
}

pub(super) fn set_format(disk: &FakeDisk, format: u64) {
    let file = database(disk);
    let txn = file.begin_write().unwrap();
    let mut meta = txn.open_table(META).unwrap();
    meta.insert("format", format).unwrap();
    drop(meta);
    txn.commit().unwrap();
}

#[test]
fn every_row_of_the_earlier_format_is_moved() {
    let (now, made) = present();
    let before = as_before(&now, true);
    let (now, moved) = (open(&now).unwrap(), open(&before).unwrap());
    assert_consistent(&moved);
    assert_eq!(ids(&moved), ids(&now));
    for id in made {
        now.read(|now| {
            moved.read(|moved| {
                let mut row = now.instance(id)?.unwrap();
                row.version = 1;
                assert_eq!(moved.instance(id)?, Some(row));
                assert_eq!(moved.provisioning_spec(id)?, now.provisioning_spec(id)?);
                assert_eq!(moved.claim(id)?, now.claim(id)?);
                assert_eq!(moved.events(id)?, now.events(id)?);
                assert_eq!(moved.ledger(id)?, now.ledger(id)?);
                Ok(())
            })
        })
        .unwrap();
    }
    moved
        .read(|moved| {
            let events = moved.owner_events(UserId(1), 0, 100)?;
            let numbers: Vec<u64> = events.iter().map(|row| row.seq).collect();
            assert_eq!(numbers, [1, 2, 3, 4, 5]);
            assert!(events.is_sorted_by_key(|row| row.event.at));
            let initiator = |row: &crate::EventRow| row.initiator.to_string();
            assert!(
                events
                    .iter()
                    .all(|row| initiator(row) == "key" && row.name.is_some())
            );
            assert_eq!(
                moved.get(&old::USERS_5, UserId(1))?.as_deref(),
                Some("ann@example.com")
            );
            assert!(moved.has(&old::KEYS_5.key(&"a key".to_owned(), &()))?);
            assert_eq!(moved.next_seq(UserId(1))?, 4);
            assert_eq!(moved.installation()?, now.read(|rows| rows.installation())?);
            Ok(())
        })
        .unwrap();
    // It takes writes, and is opened again as it is.
    moved.write_blocking(create()).unwrap();
    drop(moved);
    let again = open(&before).unwrap();
    assert_eq!(ids(&again).len(), 4);
    drop(again);
    let file = database(&before);
    let txn = file.begin_read().unwrap();
    let mut tables: Vec<_> = txn
        .list_tables()
        .unwrap()
        .map(|table| redb::TableHandle::name(&table).to_owned())
        .collect();
    tables.sort();
    assert_eq!(tables, ["meta", "rows"]);
}

#[test]
fn a_database_that_the_earlier_version_did_not_close_is_refused_and_left_alone() {
    let (now, _) = present();
    let before = as_before(&now, false);
    for _ in 0..2 {
        let refused = open(&before).err().unwrap();
        assert!(refused.contains("start and stop that version"), "{refused}");
    }
    let file = database(&before);
    let txn = file.begin_read().unwrap();
    let meta = txn.open_table(META).unwrap();
    assert_eq!(meta.get("session").unwrap().unwrap().value(), 5);
}

#[test]
fn other_formats_are_refused() {
    let (disk, _) = present();
    let newer = format!("formats up to {}", SCHEMA.format());
    for (format, why) in [
        (1, "a version in between"),
        (SCHEMA.format() + 1, newer.as_str()),
    ] {
        set_format(&disk, format);
        let refused = open(&disk).err().unwrap();
        assert!(refused.contains(why), "{refused}");
    }
    set_format(&disk, SCHEMA.format());
    assert_eq!(ids(&open(&disk).unwrap()).len(), 3);
}
