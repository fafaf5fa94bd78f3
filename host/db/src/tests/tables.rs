//! Tables of a feature: the rows that follow from their declarations.

use super::backend::FakeDisk;
use super::fixture::{Taken, create};
use super::{assert_consistent, open_as};
use crate::budget::Budget;
use crate::commit::WriteAllowance;
use crate::{Changes, Db, DbSchema, Draft, INSTANCES, Rows as _, Table, View};
use serde::{Deserialize, Serialize};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Toy {
    name: String,
    owner: UserId,
}

crate::tables! {
    /// Toys by number.
    const TOYS: Table<(), u64, Toy> =
        Table::budgeted(b'0', 0, |(), _, toy| Some(toy.owner), "The budget", "Always")
            .wakes("toys", |_, (), _, toy| Ok(Some(toy.owner)))
            .indexed(|(), number, toy, entries| entries.put(&TOY_NAMES, &*toy.name, number));
    /// Name → toy.
    const TOY_NAMES: Table<String, (), u64> = Table::index_of(&TOYS, b'2', 0);
    /// Wheels of a toy.
    const WHEELS: Table<(), (u64, u32), ()> = Table::part_of(&TOYS, b'0', 1);
    /// Notes about instances.
    const NOTES: Table<(), InstanceId, String> =
        Table::bounded(b'1', 0, "One row of an instance", "Until it is removed")
            .removed_with(&INSTANCES);
    /// Scratches need a toy, and outlive none.
    const SCRATCHES: Table<(), (u64, u32), ()> =
        Table::bounded(b'1', 1, "None", "Always").of(&TOYS);
}

static TOY_SCHEMA: DbSchema = DbSchema {
    tables: &[&[TABLES]],
    steps: &[],
};

fn toy(name: &str, owner: u64) -> Toy {
    let (name, owner) = (name.to_owned(), UserId(owner));
    Toy { name, owner }
}

fn open(disk: &FakeDisk) -> Db {
    open_as(
        disk,
        &Taken::default(),
        &TOY_SCHEMA,
        WriteAllowance::default(),
    )
    .unwrap()
}

fn write(db: &Db, changes: impl Fn() -> Changes + Send + 'static) -> Result<(), Error> {
    db.write_blocking(move |_: &View<'_>| Ok(((), changes())))
}

fn named(db: &Db, name: &str) -> Option<u64> {
    db.read(|rows| rows.get(&TOY_NAMES, name)).unwrap()
}

/// Changes a row alone, without the rows that follow from it.
fn tamper(db: &Db, key: Vec<u8>, row: Option<&[u8]>) {
    let txn = db.file.begin_write().unwrap();
    let mut rows = Draft::open(&txn, &TOY_SCHEMA).unwrap();
    rows.put_raw(&key, row).unwrap();
    drop(rows);
    txn.commit().unwrap();
}

#[test]
fn an_index_and_the_parts_of_a_row_follow_it() {
    let db = open(&FakeDisk::new());
    write(&db, || {
        let toys = [(1, toy("car", 1)), (2, toy("boat", 1))];
        let toys = toys.into_iter();
        let changes = toys.fold(Changes::none(), |c, (n, toy)| c.put(&TOYS, n, toy));
        changes
            .put(&WHEELS, ((), (1, 0)), ())
            .put(&WHEELS, ((), (1, 1)), ())
            .put(&WHEELS, ((), (2, 0)), ())
    })
    .unwrap();
    assert_eq!((named(&db, "car"), named(&db, "boat")), (Some(1), Some(2)));
    write(&db, || Changes::none().put(&TOYS, 1, toy("bus", 1))).unwrap();
    assert_eq!((named(&db, "car"), named(&db, "bus")), (None, Some(1)));
    // Names go from row to row within one change.
    write(&db, || {
        let none = Changes::none().put(&TOYS, 2, toy("ship", 1));
        none.put(&TOYS, 3, toy("boat", 1))
    })
    .unwrap();
    assert_eq!((named(&db, "boat"), named(&db, "ship")), (Some(3), Some(2)));
    write(&db, || Changes::none().remove(&TOYS, 1)).unwrap();
    let wheels = db.read(|rows| {
        rows.keys_under(&WHEELS, &())?
            .collect::<Result<Vec<_>, _>>()
    });
    assert_eq!((named(&db, "bus"), wheels.unwrap()), (None, vec![(2, 0)]));
    assert_consistent(&db);
}

#[test]
fn parts_of_an_instance_go_with_it() {
    let db = open(&FakeDisk::new());
    let [kept, gone] = [(); 2].map(|()| db.write_blocking(create()).unwrap());
    write(&db, move || {
        let notes = [kept, gone].into_iter();
        notes.fold(Changes::none(), |c, id| c.put(&NOTES, id, String::new()))
    })
    .unwrap();
    db.write_blocking(super::fixture::delete(gone)).unwrap();
    let notes = db.read(|rows| rows.keys_under(&NOTES, &())?.collect::<Result<Vec<_>, _>>());
    assert_eq!(notes.unwrap(), [kept]);
    assert_consistent(&db);
}

#[test]
fn a_change_wakes_the_owner_s_receivers_of_its_topic() {
    let db = open(&FakeDisk::new());
    let counts = db.topics_of(UserId(1));
    write(&db, || Changes::none().put(&TOYS, 1, toy("car", 1))).unwrap();
    write(&db, || Changes::none().put(&TOYS, 2, toy("bus", 2))).unwrap();
    write(&db, || Changes::none().remove(&TOYS, 1)).unwrap();
    assert_eq!(*counts.borrow(), [("toys", 2)].into());
}

#[test]
fn a_new_row_takes_from_the_budget_of_its_user() {
    let room = WriteAllowance {
        budget: Budget::new(2),
        ..WriteAllowance::default()
    };
    let db = open_as(&FakeDisk::new(), &Taken::default(), &TOY_SCHEMA, room).unwrap();
    let put = |number| {
        write(&db, move || {
            Changes::none().put(&TOYS, number, toy("car", 1))
        })
    };
    put(1).unwrap();
    // A row that is written again costs nothing.
    write(&db, || Changes::none().rewrite(&TOYS, 1, toy("bus", 1))).unwrap();
    put(2).unwrap();
    assert!(matches!(put(3), Err(Error::TooManyRecords { .. })));
    write(&db, || Changes::none().put(&TOYS, 4, toy("van", 2))).unwrap();
    write(&db, || Changes::none().remove(&TOYS, 1)).unwrap();
}

#[test]
fn a_check_finds_contradictions_of_the_declarations_and_mends_indices_and_parts() {
    let disk = FakeDisk::new();
    let db = open(&disk);
    write(&db, || Changes::none().put(&TOYS, 1, toy("car", 1))).unwrap();
    let name = |name: &str| TOY_NAMES.key(&name.to_owned(), &());
    tamper(&db, name("car"), None);
    tamper(&db, name("bus"), Some(&[1, 2]));
    tamper(&db, WHEELS.key(&(), &(7, 0)), Some(&[1]));
    tamper(&db, SCRATCHES.key(&(), &(8, 0)), Some(&[1]));
    tamper(&db, TOYS.key(&(), &9), Some(&[9]));
    let found = db.check();
    let texts: Vec<_> = found
        .iter()
        .map(|f| (f.is_repairable(), &*f.text))
        .collect();
    for (repairable, text) in [
        (true, "toy_names lacks \"car\" of 1"),
        (true, "wheels has a row of 7, which toys lacks"),
        (false, "scratches has a row of 8, which toys lacks"),
    ] {
        assert!(texts.contains(&(repairable, text)), "{text}: {texts:?}");
    }
    let is_unreadable = |(_, text): &(bool, &str)| text.starts_with("toys: a row cannot be read");
    assert!(texts.iter().any(is_unreadable), "{texts:?}");
    // The name may be of the row that cannot be read.
    assert_eq!(texts.len(), 4, "{texts:?}");
    tamper(&db, TOYS.key(&(), &9), None);
    let found = db.check();
    let extra = "toy_names has \"bus\" of 2, which no row says";
    assert!(
        found.iter().any(|f| f.is_repairable() && f.text == extra),
        "{found:?}"
    );
}

#[test]
fn the_claim_of_an_instance_that_cannot_be_read_stays() {
    let db = open(&FakeDisk::new());
    let id = db.write_blocking(create()).unwrap();
    tamper(&db, INSTANCES.key(&id, &()), Some(&[9]));
    let found = db.check();
    let is_unreadable = |text: &str| text.starts_with("instances: a row cannot be read");
    assert!(found.iter().any(|f| is_unreadable(&f.text)), "{found:?}");
    assert!(!found.iter().any(|f| f.is_repairable()), "{found:?}");
}

#[test]
fn an_entry_of_two_rows_is_found() {
    let db = open(&FakeDisk::new());
    write(&db, || {
        let none = Changes::none().put(&TOYS, 1, toy("car", 1));
        none.put(&TOYS, 2, toy("car", 1))
    })
    .unwrap();
    let found = db.check();
    let text = "toy_names is to have \"car\" of 1 and \"car\" of 2";
    assert!(found.iter().any(|f| f.text == text), "{found:?}");
}

/// The groups of keys of two tables may have first parts of different lengths.
#[test]
fn a_key_of_an_index_is_never_one_of_its_table() {
    const OF_USER: Table<UserId, [u8; 32], ()> = Table::bounded(b'P', 0, "", "");
    const BY_DIGEST: Table<(), [u8; 32], UserId> = Table::bounded(b'P', 1, "", "");
    for byte in 0..=u8::MAX {
        let digest = [byte; 32];
        assert!(
            OF_USER
                .parse(&BY_DIGEST.key(&(), &digest))
                .unwrap()
                .is_none()
        );
        let row = OF_USER.key(&UserId(byte.into()), &digest);
        assert!(BY_DIGEST.parse(&row).unwrap().is_none());
        let found = OF_USER.parse(&row).unwrap().unwrap();
        assert_eq!(found, (UserId(byte.into()), digest));
    }
}
