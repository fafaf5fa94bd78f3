//! A damaged page of the database is an error of the requests that need it, and nothing else.

use crate::disk::Mount;
use crate::kept::{errors_beside_recorded, stopped_server};
use crate::{Expected, has, start, until_logged, wait_until, with};
use serde_json::json;
use std::fs;
use wharf_tests::{Api, Server, metric, write_private};

const PAGE: usize = 4096;

/// A stopped server of the fixture, migrated, and the bytes of its database.
fn migrated() -> (Server, Vec<u8>) {
    let mut server = stopped_server();
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
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
                Ok(0) => harmless += 1,
                Ok(found) => errors += found,
                // A write in the background met a page of redb's own tables.
                Err(error) => {
                    refused += 1;
                    let log = server.log();
                    let last = log.lines().rfind(|line| line.starts_with("wharf: "));
                    assert!(
                        last.is_some_and(|line| line.contains("is damaged")),
                        "{error}"
                    );
                }
            },
            Err(error) => {
                refused += 1;
                let error = error.to_string();
                // The first page begins with the name of the format.
                let is_unknown = page == 0 && error.contains("is not a database of Wharf");
                assert!(is_unknown || error.contains("is damaged"), "{error}");
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
    let (mut server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let create = |api: &Api, name: String| {
        let body = with("container", json!({ "name": name }));
        api.create(&body).is(201);
        api.wait_for(&name, "running").unwrap();
    };
    for n in 0..6 {
        create(&ann, format!("first-{n}"));
    }
    for n in 0..6 {
        create(&bob, format!("second-{n}"));
    }
    server.terminate().unwrap();
    let whole = fs::read(server.data_dir().join("wharf.redb")).unwrap();
    let name = b"first-3";
    let mut places = (0..whole.len()).filter(|at| whole[*at..].starts_with(name));
    // The name is in an index and in the audit log too, on pages that a start needs.
    let mut is_of_instance = |at: usize| {
        damage(&server, &whole, at, 0);
        let started = server.run().is_ok();
        let shown = || server.again(&ann).instance("first-3").unwrap().status;
        let is_of_instance = started && shown() == 500;
        if !is_of_instance {
            server.kill().unwrap();
        }
        is_of_instance
    };
    assert!(places.any(&mut is_of_instance));
    let log = server.log();
    has(&log, "a page of the database does not have its checksum");
    has(&log, "of the tables `i` cannot be read");
    let (ann, bob) = (server.again(&ann), server.again(&bob));
    for n in 0..2 {
        // Neither a list without it nor a change of it.
        ann.get("/api/instance/").is(500);
        ann.act("first-3", "stop").is(500);
        ann.delete("first-3").is(500);
        ann.instance("first-0").is(200);
        create(&ann, format!("third-{n}"));
        create(&bob, format!("fourth-{n}"));
        bob.act(&format!("fourth-{n}"), "stop").is(200);
        bob.act(&format!("fourth-{n}"), "restart").is(200);
        assert_eq!(bob.list().unwrap().len(), 7 + n);
    }
    until_logged(&server, "the scrub found damaged pages in the database");
    let key = server.cli(&["key", "new", "op@example.com"]).unwrap();
    let metrics = Api::new(server.base_url(), key.trim());
    assert!(metric(&metrics, "wharf_db_damaged_pages").unwrap() >= 1.0);
    has(ann.get("/readyz").is(200), "is damaged");
    server.terminate().unwrap();
    assert!(server.cli(&["fsck"]).is_err());
}

#[test]
fn the_scrub_reads_every_page_and_finds_nothing_in_a_whole_database() {
    let (mut server, _) = migrated();
    server.run().unwrap();
    let metrics = server.user("op@example.com").unwrap();
    // The log has that of the earlier start too.
    wait_until("the scrub has ended", || {
        let ended = metric(&metrics, "wharf_db_scrub_end_timestamp_seconds")?;
        Ok((ended > 1e9).then_some(()))
    });
    let pages = metric(&metrics, "wharf_db_pages").unwrap();
    assert!(pages > 10.0);
    // The writes since then may have added pages.
    let scrubbed = metric(&metrics, "wharf_db_scrub_pages").unwrap();
    assert!((10.0..=pages).contains(&scrubbed), "{scrubbed} of {pages}");
    assert_eq!(metric(&metrics, "wharf_db_damaged_pages").unwrap(), 0.0);
    assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
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
    assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
    server.terminate().unwrap();
    // It is taken back with a copy. The compaction that makes it again leaves the way back.
    fs::copy(&kept, &database).unwrap();
    server.cli(&["compact"]).unwrap();
    assert!(fs::read(&database).unwrap().starts_with(b"wharf"));
    assert!(fs::read(&kept).unwrap().starts_with(b"redb"));
    server.cli(&["compact"]).unwrap();
    assert!(!kept.exists());
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
}

#[test]
fn an_upgrade_that_does_not_fit_the_disk_is_refused_and_changes_nothing() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs root");
        eprintln!("SKIPPED: mounting needs root");
        return;
    }
    let mut server = stopped_server();
    let data = server.data_dir();
    let files = ["wharf.redb", "secret.key", "engine"];
    let content = files.map(|name| fs::read(data.join(name)).unwrap());
    let settings = fs::read_to_string(server.config_path()).unwrap();
    let settings = format!("{settings}\n[limits]\ndisk_reserve_mib = 8\n");
    fs::write(server.config_path(), settings).unwrap();
    let mount = Mount::new(&data);
    for (name, content) in files.iter().zip(&content) {
        write_private(&data.join(name), content).unwrap();
    }
    mount.fill(8 << 20);
    let refused = server.run().unwrap_err().to_string();
    has(&refused, "must be migrated to a new file");
    has(&refused, "MiB are free");
    server.kill().unwrap();
    // Without the reserve it would fit, and then all changes of users would be refused.
    mount.fill(content[0].len() + (68 << 20));
    let refused = server.run().unwrap_err().to_string();
    let needed = content[0].len().div_ceil(1 << 20) + 72;
    has(&refused, format!("for which {needed} MiB are needed"));
    server.kill().unwrap();
    assert!(fs::read(data.join(files[0])).unwrap().starts_with(b"redb"));
    assert!(!data.join("wharf.redb.migrating").exists());
    mount.clear();
    server.run().unwrap();
    assert_eq!(errors_beside_recorded(&server).unwrap(), 0);
    // Before the file system of its data is gone.
    server.finish().unwrap();
}
