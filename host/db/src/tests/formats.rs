//! Files of every format are opened: recovered by redb first, as none of them was closed, and migrated
//! then.

use super::backend::Disk;
use super::{assert_consistent, ids, open};
use crate::Read;
use flate2::read::GzDecoder;
use std::io::Read as _;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Intent;

/// A database of a version of Wharf that was killed. It has two instances, one of which is stopped,
/// and a third one was deleted.
fn file(gzipped: &[u8]) -> Disk {
    let mut bytes = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut bytes).unwrap();
    Disk::of(bytes)
}

fn assert_opens(gzipped: &[u8]) {
    let disk = file(gzipped);
    for _ in 0..2 {
        let db = open(&disk).unwrap();
        assert_consistent(&db);
        let rows = db.read(|rows| {
            assert_eq!(rows.email_of(UserId(1))?.unwrap(), "ann@example.com");
            assert_eq!(rows.all_keys()?.len(), 1);
            let events = rows.owner_events(UserId(1), 0, 100)?;
            assert!(events.len() > 5 && events.is_sorted_by_key(|row| row.event.at));
            let numbers = events.iter().map(|row| row.seq);
            assert!(numbers.eq(1..=rows.last_event(UserId(1))?));
            rows.owned_by(UserId(1))
        });
        let intents = rows.unwrap();
        let intents: Vec<_> = intents
            .iter()
            .map(|i| (i.name.as_str(), i.intent))
            .collect();
        let expected = [("instance-a", Intent::Run), ("instance-b", Intent::Stop)];
        assert_eq!(intents, expected);
        assert_eq!(ids(&db).len(), 2);
    }
}

#[test]
fn format_2() {
    assert_opens(include_bytes!("fixtures/format-2.redb.gz"));
}

#[test]
fn format_3() {
    assert_opens(include_bytes!("fixtures/format-3.redb.gz"));
}

#[test]
fn format_4() {
    assert_opens(include_bytes!("fixtures/format-4.redb.gz"));
}
