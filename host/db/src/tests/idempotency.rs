//! Requests with an idempotency key, and their expiry.

use super::backend::Disk;
use super::fixture::create;
use super::open;
use crate::{Change, Changes, Db, IdempotentCreate, Read};
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::time::Timestamp;

fn keep(db: &Db, instance: &Instance, n: u8, at: i64, expired_before: i64) {
    let instance = instance.clone();
    db.write_blocking(move |_| {
        let create = IdempotentCreate {
            body: [n; 32],
            at: Timestamp(at),
            instance: instance.clone(),
        };
        let before = Timestamp(expired_before);
        let change = Change::PutIdempotent([n; 32], Box::new(create), before);
        Ok(((), Changes::none().with(change)))
    })
    .unwrap();
}

#[test]
fn expired_requests_go_in_bounded_batches() {
    let db = open(&Disk::new()).unwrap();
    let id = db.write_blocking(create()).unwrap();
    let instance = db.read(|rows| rows.instance(id)).unwrap().unwrap();
    let kept = || {
        let found = |n: u8| {
            db.read(|rows| rows.idempotent_create(UserId(1), [n; 32]))
                .unwrap()
        };
        (0..60).filter_map(found).count()
    };
    for n in 0..50 {
        keep(&db, &instance, n, i64::from(n), 0);
    }
    assert_eq!(kept(), 50);
    // A key that is used again after its time is kept from then on.
    keep(&db, &instance, 0, 1000, 0);
    assert_eq!((kept(), db.check().len()), (50, 0));
    keep(&db, &instance, 50, 1001, 41);
    assert_eq!(kept(), 51 - 16, "one write removes 16");
    keep(&db, &instance, 51, 1002, 41);
    keep(&db, &instance, 52, 1003, 41);
    // Those of 41 to 49, the one used again, and the last three.
    assert_eq!(kept(), 9 + 1 + 3);
    keep(&db, &instance, 53, 1004, 41);
    assert_eq!((kept(), db.check().len()), (14, 0));
}
