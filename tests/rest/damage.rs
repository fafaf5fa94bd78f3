//! A damaged page of the database is an error of the requests that need it, and nothing else.

use crate::kept::{api, errors_beside_recorded, stopped_server};
use crate::{Expected, has, until_logged};
use std::fs;
use wharf_tests::{Server, metric, write_private};

const PAGE: usize = 4096;

/// A stopped server of the fixture, migrated, and the bytes of its database.
fn migrated() -> (Server, Vec<u8>) {
    let mut server = stopped_server();
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server), 0);
    server.terminate().unwrap();
    let database = fs::read(server.data_dir().join("wharf.redb")).unwrap();
    (server, database)
}

fn damage(server: &Server, database: &[u8], at: usize, bit: u8) {
    let mut database = database.to_vec();
    database[at] ^= 1 << bit;
    write_private(&server.data_dir().join("wharf.redb"), &database).unwrap();
}

#[test]
fn no_flipped_bit_is_served() {
    let (mut server, whole) = migrated();
    let (mut refused, mut errors, mut harmless) = (0, 0, 0);
    let mut seed = 35_usize;
    for (page, content) in whole.chunks(PAGE).enumerate() {
        let used: Vec<_> = (0..content.len()).filter(|at| content[*at] != 0).collect();
        if used.is_empty() {
            continue;
        }
        seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
        let at = used[(seed >> 8) % used.len()];
        damage(&server, &whole, page * PAGE + at, (seed % 8) as u8);
        match server.run() {
            Ok(()) => match errors_beside_recorded(&server) {
                0 => harmless += 1,
                found => errors += found,
            },
            Err(error) => {
                refused += 1;
                has(error.to_string(), "is damaged");
            }
        }
        server.kill().unwrap();
    }
    assert!(
        refused > 0 && errors > 0 && harmless > 0,
        "{refused} {errors} {harmless}"
    );
}

#[test]
fn a_damaged_page_ends_no_other_request_and_raises_an_alarm() {
    let (mut server, whole) = migrated();
    let name = b"alpha-renamed";
    let places: Vec<_> = (0..whole.len())
        .filter(|at| whole[*at..].starts_with(name))
        .collect();
    // The name is in indices and in the audit log too, on pages that a start needs.
    let is_of_instance = |server: &mut Server, at: usize| {
        damage(server, &whole, at, 0);
        let is_of_instance = server.run().is_ok()
            && api(server, "ann").instance("marimo-two").unwrap().status == 200
            && api(server, "ann").instance("alpha-renamed").unwrap().status == 500;
        if !is_of_instance {
            server.kill().unwrap();
        }
        is_of_instance
    };
    let found = places
        .into_iter()
        .find(|at| is_of_instance(&mut server, *at));
    assert!(found.is_some());
    let log = server.log();
    has(&log, "a page of the database does not have its checksum");
    has(&log, "of the tables `i` cannot be read");
    let (ann, bob) = (api(&server, "ann"), api(&server, "bob"));
    for _ in 0..3 {
        // Neither a list without it nor a change of it.
        ann.get("/api/instance/").is(500);
        ann.act("alpha-renamed", "stop").is(500);
        ann.delete("alpha-renamed").is(500);
        ann.small_container().unwrap();
        bob.small_container().unwrap();
        assert_eq!(bob.list().unwrap()[0]["name"], "bobs-fast");
    }
    until_logged(&server, "the scrub found damaged pages in the database");
    let metrics = server.user("op@example.com").unwrap();
    assert!(metric(&metrics, "wharf_db_damaged_pages").unwrap() >= 1.0);
    has(ann.get("/readyz").is(200).to_string(), "is damaged");
    server.terminate().unwrap();
    assert!(server.cli(&["fsck"]).is_err());
}

#[test]
fn the_scrub_reads_every_page_and_finds_nothing_in_a_whole_database() {
    let (mut server, _) = migrated();
    server.run().unwrap();
    until_logged(&server, "the scrub found no damage in the database");
    let metrics = server.user("op@example.com").unwrap();
    let pages = metric(&metrics, "wharf_db_pages").unwrap();
    assert!(pages > 10.0);
    assert_eq!(metric(&metrics, "wharf_db_scrub_pages").unwrap(), pages);
    assert!(metric(&metrics, "wharf_db_scrub_end_timestamp_seconds").unwrap() > 1e9);
    assert_eq!(metric(&metrics, "wharf_db_damaged_pages").unwrap(), 0.0);
    assert_eq!(errors_beside_recorded(&server), 0);
    server.finish().unwrap();
}

#[test]
fn an_upgrade_can_be_taken_back_until_the_database_is_compacted() {
    let mut server = stopped_server();
    let data = server.data_dir();
    let (database, kept) = (data.join("wharf.redb"), data.join("wharf.redb.format-5"));
    server.run().unwrap();
    server.terminate().unwrap();
    assert!(fs::read(&database).unwrap().starts_with(b"wharf"));
    assert!(fs::read(&kept).unwrap().starts_with(b"redb"));
    // It is taken back, and made again.
    fs::rename(&kept, &database).unwrap();
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server), 0);
    server.terminate().unwrap();
    assert!(kept.exists());
    server.cli(&["compact"]).unwrap();
    assert!(!kept.exists());
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server), 0);
    server.finish().unwrap();
}
