//! The expiry of requests with an idempotency key.

#![allow(clippy::unwrap_used)]

use super::{IDEMPOTENT, Idempotent, TABLES, keep};
use crate::SharedInventory;
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::path::Path;
use wharf_db::{CommitTimes, Db, DbBounds, DbSchema, Read as _, Rows as _};
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::placement::{Inventory, Pools};
use wharf_domain::time::Timestamp;

/// A database with an instance.
const GZIPPED: &[u8] = include_bytes!("../../../db/src/tests/fixtures/format-4.redb.gz");

static SCHEMA: DbSchema = DbSchema {
    tables: &[&[TABLES]],
    steps: &[],
};

fn open(dir: &Path) -> Db {
    let mut bytes = Vec::new();
    GzDecoder::new(GZIPPED).read_to_end(&mut bytes).unwrap();
    let path = dir.join("wharf.redb");
    wharf_secure_fs::open_new(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let (ssh, web) = ((1, 2), (3, 4));
    let inventory = SharedInventory::new(Inventory::new(Vec::new(), Pools { ssh, web }));
    let clock = Box::new(|| CommitTimes::agreed(Timestamp(3)));
    let bounds = DbBounds::default();
    Db::open(dir, &SCHEMA, Box::new(inventory), clock, bounds).unwrap()
}

async fn write(db: &Db, instance: &Instance, n: u8, at: i64, expired_before: i64) {
    let instance = instance.clone();
    let decided = db.write(move |view| {
        let create = Idempotent {
            body: [n; 32],
            at: Timestamp(at),
            created: instance.clone(),
        };
        let before = Timestamp(expired_before);
        Ok(((), keep(view.rows, (UserId(1), [n; 32]), create, before)?))
    });
    decided.await.unwrap();
}

#[tokio::test]
async fn expired_requests_go_in_bounded_batches() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let instances = db.read(|rows| rows.owned_by(UserId(1))).unwrap();
    let instance = instances.into_iter().next().unwrap();
    let kept = || {
        let found = |n: u8| {
            let key = ((), (UserId(1), [n; 32]));
            db.read(|rows| rows.get(&IDEMPOTENT, key)).unwrap()
        };
        (0..60).filter_map(found).count()
    };
    for n in 0..50 {
        write(&db, &instance, n, i64::from(n), 0).await;
    }
    assert_eq!(kept(), 50);
    // A key that is used again after its time is kept from then on.
    write(&db, &instance, 0, 1000, 0).await;
    assert_eq!((kept(), db.check().len()), (50, 0));
    write(&db, &instance, 50, 1001, 41).await;
    assert_eq!(kept(), 51 - 16, "one write removes 16");
    write(&db, &instance, 51, 1002, 41).await;
    write(&db, &instance, 52, 1003, 41).await;
    // Those of 41 to 49, the one used again, and the last three.
    assert_eq!(kept(), 9 + 1 + 3);
    write(&db, &instance, 53, 1004, 41).await;
    assert_eq!((kept(), db.check().len()), (14, 0));
}
