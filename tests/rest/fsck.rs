//! `wharf fsck`: rows against each other, against the engines, and damaged files.

use crate::{Expected, has, running, snapshots, start, start_on, until_says, uuid, volumes};
use redb::ReadableTable;
use std::fs;
use std::process::{Command, Output};
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Server, lasting_node, write_private};

pub type Rows<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Changes rows of a stopped server.
pub fn edit(server: &Server, change: impl FnOnce(&mut Rows<'_>)) {
    let database = wharf_db::rows_in(&server.data_dir().join("wharf.redb")).unwrap();
    let txn = database.begin_write().unwrap();
    let rows = redb::TableDefinition::<&[u8], &[u8]>::new("rows");
    change(&mut txn.open_table(rows).unwrap());
    txn.commit().unwrap();
}

/// Replaces bytes of a row by others of the same number.
pub fn replace(rows: &mut Rows<'_>, key: &[u8], from: &[u8], to: &[u8]) {
    let mut row = row_of(rows, key);
    let at = row.windows(from.len()).position(|part| part == from);
    let at = at.unwrap();
    row[at..at + from.len()].copy_from_slice(to);
    rows.insert(key, &*row).unwrap();
}

/// The bytes of a row.
pub fn row_of(rows: &Rows<'_>, key: &[u8]) -> Vec<u8> {
    rows.get(key).unwrap().unwrap().value().to_vec()
}

/// Flips a bit of the only ciphertext of a row, which begins with its mark.
pub fn flip_bit(row: &mut [u8]) {
    let at = row.windows(4).position(|part| part == b"key1").unwrap();
    row[at + 40] ^= 1;
}

/// The bytes of a UUID.
pub fn bytes(uuid: &str) -> Vec<u8> {
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    let byte = |n| u8::from_str_radix(&digits[n..n + 2], 16).unwrap();
    (0..32).step_by(2).map(byte).collect()
}

fn complaints(server: &Server, args: &[&str]) -> String {
    let args = [&["fsck"], args].concat();
    server.cli(&args).unwrap_err().to_string()
}

#[test]
fn indices_are_repaired_when_the_operator_says_so() {
    let (mut server, api) = start();
    let created = running(&api);
    let name = created["name"].as_str().unwrap();
    server.terminate().unwrap();
    edit(&server, |rows| {
        let length = u32::try_from(name.len()).unwrap().to_be_bytes();
        let key = [b"n", &length[..], name.as_bytes(), &[0]].concat();
        assert!(rows.remove(&*key).unwrap().is_some());
    });
    let database = server.data_dir().join("wharf.redb");
    let before = fs::read(&database).unwrap();
    assert!(complaints(&server, &[]).contains("names lacks"));
    let plan = complaints(&server, &["--repair"]);
    assert!(
        plan.contains("(repairable)") && plan.contains("would mend 1"),
        "{plan}"
    );
    assert!(
        fs::read(&database).unwrap() == before,
        "a check changed the file"
    );
    let done = server.cli(&["fsck", "--repair", "--yes"]).unwrap();
    assert!(done.contains("repaired 1"), "{done}");
    server.run().unwrap();
    let found = server.again(&api).instance(name).unwrap().expect(200);
    assert_eq!(found.unwrap()["uuid"], created["uuid"]);
}

#[test]
fn the_ledger_of_an_instance_that_is_gone_is_checked() {
    let (mut server, api) = start();
    let created = running(&api);
    api.delete(uuid(&created)).is(204);
    let id = uuid(&created);
    until_says(&server, &["events", id], "purged");
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    edit(&server, |rows| {
        let ledger = [b"i", &bytes(id)[..], &[3]].concat();
        let end = [b"i", &bytes(id)[..], &[4]].concat();
        let keys = rows.range(&*ledger..&*end).unwrap();
        let keys: Vec<_> = keys.map(|row| row.unwrap().0.value().to_vec()).collect();
        rows.remove(&**keys.last().unwrap()).unwrap();
        let recorded = rows.range(&b"r"[..]..&b"s"[..]).unwrap();
        let recorded: Vec<_> = recorded
            .map(|row| row.unwrap().0.value().to_vec())
            .collect();
        let [recorded] = recorded.as_slice() else {
            panic!("{recorded:?}");
        };
        assert!(recorded.ends_with(&bytes(id)));
        rows.remove(&**recorded).unwrap();
    });
    let text = complaints(&server, &[]);
    for complaint in [
        "its ledger bills it after its deletion",
        "its ledger is not recorded for user 1",
    ] {
        assert!(text.contains(&format!("{id}: {complaint}")), "{text}");
    }
}

#[test]
fn objects_without_rows_and_rows_without_objects_are_shown() {
    let (node, dir) = lasting_node("one", "").unwrap();
    let engine = dir.path().join("engine");
    let (mut server, api) = start_on("", &node);
    let old = running(&api);
    let backup = dir.path().join("backup");
    server.cli(&["backup", backup.to_str().unwrap()]).unwrap();
    let new = running(&api);
    server.terminate().unwrap();
    server.cli(&["fsck", "--engines"]).unwrap();
    // After a restore of an older copy, the engine has an object that the database never made.
    fs::remove_file(server.data_dir().join("wharf.redb")).unwrap();
    server.cli(&["restore", backup.to_str().unwrap()]).unwrap();
    let text = complaints(&server, &["--engines"]);
    let orphan = format!("{}: an orphan on node one", uuid(&new));
    assert!(
        text.contains(&orphan) && !text.contains(uuid(&old)),
        "{text}"
    );
    // An engine that lost its objects.
    fs::remove_file(&engine).unwrap();
    let text = complaints(&server, &["--engines"]);
    let ghost = format!("{}: a ghost", uuid(&old));
    assert!(
        text.contains(&ghost) && !text.contains(uuid(&new)),
        "{text}"
    );
}

#[test]
fn volumes_and_snapshots_of_engines_are_compared_too() {
    let (node, dir) = lasting_node("one", "").unwrap();
    let (mut server, api) = start_on("", &node);
    let instance = running(&api);
    let make = |name: &str| {
        let volume = volumes::ready(&api, name, 1);
        let snapshot = snapshots::ready(&api, &instance, name);
        [("volume", volume), ("snapshot", snapshot)]
            .map(|(word, kept)| format!("{word} {}", kept["id"].as_str().unwrap()))
    };
    let old = make("old");
    let backup = dir.path().join("backup");
    server.cli(&["backup", backup.to_str().unwrap()]).unwrap();
    let new = make("new");
    server.terminate().unwrap();
    server.cli(&["fsck", "--engines"]).unwrap();
    fs::remove_file(server.data_dir().join("wharf.redb")).unwrap();
    server.cli(&["restore", backup.to_str().unwrap()]).unwrap();
    let text = complaints(&server, &["--engines"]);
    for (old, new) in old.iter().zip(&new) {
        has(&text, format!("{new}: an orphan on node one"));
        assert!(!text.contains(old), "{text}");
    }
    fs::remove_file(dir.path().join("engine")).unwrap();
    let text = complaints(&server, &["--engines"]);
    for (old, new) in old.iter().zip(&new) {
        has(&text, format!("{old}: a ghost"));
        assert!(!text.contains(new), "{text}");
    }
}

/// Runs a command on a damaged file, which must end with a sentence.
fn run(server: &Server, args: &[&str]) -> Output {
    let mut command = Command::new(wharf_binary());
    command.args(args).arg("--config").arg(server.config_path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    output
}

#[test]
fn a_damaged_page_is_named_with_the_file_and_what_to_do() {
    let (mut server, api) = start();
    for _ in 0..6 {
        api.small_container().unwrap();
    }
    server.terminate().unwrap();
    let database = server.data_dir().join("wharf.redb");
    let mut bytes = fs::read(&database).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..32].fill(0xA5);
    }
    write_private(&database, &bytes).unwrap();
    let name = database.file_name().unwrap().to_str().unwrap();
    for args in [
        &["fsck"][..],
        &["bill", "ann@example.com"],
        &["key", "list"],
        &["serve"],
    ] {
        let output = run(&server, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        for words in ["is damaged", name, "wharf fsck", "restore"] {
            assert!(said.contains(words), "{args:?}: {words}: {said}");
        }
    }
}

#[test]
fn a_page_whose_rows_still_have_sense_is_found_by_its_checksum() {
    let (mut server, api) = start();
    api.small_container().unwrap();
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    let database = server.data_dir().join("wharf.redb");
    let mut bytes = fs::read(&database).unwrap();
    // A whole other address, so that only the checksum is wrong.
    let (old, new) = (b"ann@example.com", b"eve@example.com");
    let places: Vec<_> = (0..bytes.len() - old.len())
        .filter(|at| bytes[*at..].starts_with(old))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    write_private(&database, &bytes).unwrap();
    let output = run(&server, &["fsck"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let name = database.file_name().unwrap().to_str().unwrap();
    for words in ["is damaged", name, "wharf restore"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
