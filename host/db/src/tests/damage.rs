//! Files with flipped bits are refused or opened, without a panic.

use super::fixture::{Taken, create, delete, intend};
use super::{SCHEMA, directory};
use crate::guard::guarded;
use crate::{Db, DbBounds, Read, inspect, open};
use wharf_domain::instance::Intent;

#[test]
fn no_flipped_bit_makes_an_opening_or_a_check_panic() {
    let dir = directory("damage");
    let opened = || {
        Db::open(
            &dir,
            &SCHEMA,
            Box::<Taken>::default(),
            Box::new(crate::CommitTimes::default),
            DbBounds::default(),
        )
    };
    let db = opened().unwrap();
    let made = [(); 30].map(|()| db.write_blocking(create()).unwrap());
    for id in &made[..10] {
        db.write_blocking(intend(*id, Intent::Delete)).unwrap();
        db.write_blocking(delete(*id)).unwrap();
    }
    drop(db);
    let path = open::path_in(&dir);
    let whole = std::fs::read(&path).unwrap();
    let pages = whole.chunks(4096).enumerate();
    let pages = pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0));
    let pages: Vec<_> = pages.map(|(n, _)| n * 4096).collect();
    let mut seed = 3_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let (mut refused, mut wrong) = (0, 0);
    for n in 0..400 {
        let mut bytes = whole.clone();
        let at = pages[n % pages.len()] + random([32, 256, 1024, 4096][n % 4]);
        bytes[at.min(whole.len() - 1)] ^= 1 << random(8);
        std::fs::write(&path, &bytes).unwrap();
        let sound = match inspect(&dir, Box::<Taken>::default(), &SCHEMA) {
            Ok(inspected) => {
                let findings = inspected.db.check();
                wrong += usize::from(!findings.is_empty() || !inspected.pages.is_empty());
                let sound = inspected.pages.is_empty();
                let _ = guarded(|| drop(inspected));
                sound
            }
            Err(_) => {
                refused += 1;
                false
            }
        };
        // The rows of an opened file may be wrong; each is an error of the request that reads it. A
        // panic of redb may poison its locks, and then it panics again when it closes the file, which
        // ends the server with a message.
        if sound && let Ok(db) = opened() {
            let _ = guarded(|| db.read(|rows| rows.each_instance(drop)));
            let _ = guarded(|| drop(db));
        }
    }
    assert!(refused + wrong > 100, "{refused} {wrong}");
    std::fs::remove_dir_all(&dir).unwrap();
}
