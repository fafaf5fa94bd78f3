//! Files of every format are opened: recovered by redb first, as none of them was closed, and migrated
//! then.

use super::backend::FakeDisk;
use super::{assert_consistent, ids, open};
use crate::migrate::USERS_5;
use crate::{Changes, Read, Rows as _, View};
use flate2::read::GzDecoder;
use std::io::Read as _;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Intent;
use wharf_domain::ledger::months;

/// A database of a version of Wharf that was killed. It has two instances, one of which is stopped,
/// and a third one was deleted.
fn file(gzipped: &[u8]) -> FakeDisk {
    let mut bytes = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut bytes).unwrap();
    FakeDisk::of(bytes)
}

fn assert_opens(gzipped: &[u8]) {
    let disk = file(gzipped);
    for _ in 0..2 {
        let db = open(&disk).unwrap();
        assert_consistent(&db);
        let rows = db.read(|rows| {
            assert_eq!(rows.get(&USERS_5, UserId(1))?.unwrap(), "ann@example.com");
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

/// Retention removes the events of a purged instance before its ledger, or its ledger before its events.
#[test]
fn an_instance_that_an_earlier_version_purged_stays_on_the_bill_as_long_as_its_costs() {
    let owner = UserId(1);
    for ledger_first in [false, true] {
        for is_free in [false, true] {
            let disk = file(include_bytes!("fixtures/format-4.redb.gz"));
            let db = open(&disk).unwrap();
            let gone = db.read(|rows| {
                let mut recorded = rows.recorded_of(owner)?.into_iter();
                let id = recorded.find(|id| matches!(rows.instance(*id), Ok(None)));
                Ok::<_, Error>(id.unwrap())
            });
            let id = gone.unwrap();
            let known = || db.read(|rows| rows.billed_as(id)).unwrap();
            let before = known().unwrap();
            assert!(before.size.n_vcpus > 0 && before.flavor.is_none());
            let ledger = db.read(|rows| rows.ledger(id)).unwrap();
            let months = if is_free {
                Vec::new()
            } else {
                months(&ledger, &[])
            };
            assert!(is_free || !months.is_empty());
            for closes in [ledger_first, !ledger_first] {
                let months = months.clone();
                let write = move |_: &View<'_>| {
                    let none = Changes::none();
                    let changes = if closes {
                        none.close_ledger(owner, id, months.clone())
                    } else {
                        none.drop_events(id)
                    };
                    Ok(((), changes))
                };
                db.write_blocking(write).unwrap();
            }
            assert_eq!(known(), (!is_free).then_some(before));
        }
    }
}
