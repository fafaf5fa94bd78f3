//! The database file: a missing, empty, foreign or newer one is refused and left as it is.

use crate::{has, start};
use std::fs;
use std::path::Path;
use wharf_tests::Server;

/// Starts the server, which must refuse, and returns its message.
pub fn refused(server: &mut Server) -> String {
    let error = server.run().expect_err("the server started").to_string();
    server.kill().unwrap();
    let sentence = error.lines().rev().find(|line| line.starts_with("wharf: "));
    sentence.expect(&error).to_owned()
}

fn assert_refused(server: &mut Server, parts: &[&str]) {
    let database = server.data_dir().join("wharf.redb");
    // redb notes in its header and its own tables that it has opened a file.
    let content = || {
        fs::read(&database)
            .ok()
            .filter(|bytes| !bytes.starts_with(b"redb") && !bytes.starts_with(b"wharf"))
    };
    let before = content();
    let message = refused(server);
    for part in parts {
        has(&message, part);
    }
    assert!(content() == before, "{message}");
    let listed = server.cli(&["key", "list"]).unwrap_err().to_string();
    assert!(listed.contains(parts[0]), "{listed}");
    assert!(content() == before, "{listed}");
}

/// Sets the format of a stopped server's database, or removes it.
pub fn set_format(path: &Path, format: Option<u64>) {
    let database = wharf_db::rows_in(path).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let meta = redb::TableDefinition::<&str, u64>::new("meta");
        let mut meta = txn.open_table(meta).unwrap();
        match format {
            Some(format) => drop(meta.insert("format", format).unwrap()),
            None => drop(meta.remove("format").unwrap()),
        }
    }
    txn.commit().unwrap();
}

#[test]
fn a_lost_foreign_or_newer_database_is_refused_and_never_replaced() {
    let (mut server, api) = start();
    let created = api.small_container().unwrap();
    server.terminate().unwrap();
    let data = server.data_dir();
    let database = data.join("wharf.redb");
    let kept = data.with_file_name("kept");
    fs::rename(&database, &kept).unwrap();
    let missing = [
        "is missing, but",
        "secret.key",
        "to start afresh on purpose",
    ];
    assert_refused(&mut server, &missing);
    // One of the remains is enough.
    let away = |name: &str| fs::rename(data.join(name), data.with_file_name(name)).unwrap();
    away("secret.key");
    assert_refused(&mut server, &["is missing, but", "plugins-cache"]);
    away("plugins-cache");
    fs::write(data.join("wharf.journal"), b"").unwrap();
    assert_refused(&mut server, &["is missing, but", "wharf.journal"]);
    fs::remove_file(data.join("wharf.journal")).unwrap();
    fs::rename(data.with_file_name("secret.key"), data.join("secret.key")).unwrap();

    fs::write(&database, b"").unwrap();
    assert_refused(&mut server, &["is empty", "wharf.redb"]);
    for foreign in [&b"x"[..], b"SQLite format 3\0", &[0; 4096]] {
        fs::write(&database, foreign).unwrap();
        assert_refused(&mut server, &["is not a database of Wharf", "wharf.redb"]);
    }
    fs::remove_file(&database).unwrap();
    drop(redb::Database::create(&database).unwrap());
    assert_refused(&mut server, &["is not a database of Wharf"]);
    fs::copy(&kept, &database).unwrap();
    set_format(&database, None);
    assert_refused(&mut server, &["is not a database of Wharf"]);
    set_format(&database, Some(99));
    assert_refused(&mut server, &["has format 99", "knows formats up to"]);

    fs::copy(&kept, &database).unwrap();
    server.run().unwrap();
    let listed = server.again(&api).list().unwrap();
    assert_eq!(listed[0]["uuid"], created["uuid"]);
}

#[test]
fn a_directory_whose_content_was_moved_away_is_a_fresh_start() {
    let (mut server, api) = start();
    api.small_container().unwrap();
    server.terminate().unwrap();
    fs::rename(server.data_dir(), server.data_dir().with_file_name("old")).unwrap();
    server.run().unwrap();
    let key = server.user("ann@example.com").unwrap();
    assert_eq!(key.list().unwrap().len(), 0);
}
