//! The key of the secrets: a missing or wrong one, rows that it does not decrypt, and its rotation.

use crate::database::{refused, set_format};
use crate::fsck::{bytes, edit, flip_bit};
use crate::{Expected, has, start, uuid, wait_until};
use redb::ReadableTable;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Api, Server};

fn key_file(server: &Server) -> PathBuf {
    server.data_dir().join("secret.key")
}

fn passwords(api: &Api) -> Vec<Value> {
    let list = api.list().unwrap();
    let password = |i: &Value| i["original_service_password"].clone();
    list.iter().map(password).collect()
}

/// Makes the database one of format 3, which names no key and has no sequences of events.
fn forget_key(server: &Server) {
    edit(server, |rows| {
        assert!(rows.remove(&b"#\x01"[..]).unwrap().is_some());
        let sequences = rows.extract_from_if(&b"E"[..]..&b"F"[..], |_, _| true);
        assert!(sequences.unwrap().all(|row| row.is_ok()));
    });
    set_format(&server.data_dir().join("wharf.redb"), Some(3));
}

#[test]
fn a_missing_or_wrong_key_file_is_refused_and_never_replaced() {
    let (mut server, api) = start();
    let created = api.small_container().unwrap();
    server.terminate().unwrap();
    let path = key_file(&server);
    let key = fs::read(&path).unwrap();
    for format in [4, 3] {
        if format == 3 {
            forget_key(&server);
        }
        fs::remove_file(&path).unwrap();
        for _ in 0..2 {
            let message = refused(&mut server);
            for part in ["secret.key is missing", "restore the file from its backup"] {
                assert!(message.contains(part), "{message}");
            }
            assert!(!path.exists());
        }
        wharf_tests::write_private(&path, &[7; 32]).unwrap();
        let message = refused(&mut server);
        has(&message, "has the key with the fingerprint");
        assert_eq!(fs::read(&path).unwrap(), [7; 32]);
        wharf_tests::write_private(&path, &key).unwrap();
        server.run().unwrap();
        let api = server.again(&api);
        let shown = api.instance(uuid(&created)).is(200);
        assert_eq!(
            shown["original_service_password"],
            created["original_service_password"]
        );
        server.terminate().unwrap();
    }
    server.run().unwrap();
}

#[test]
fn an_instance_whose_secret_cannot_be_decrypted_is_shown_without_it() {
    let (mut server, api) = start();
    let created = [(); 3].map(|()| api.small_container().unwrap());
    for instance in &created {
        api.wait_for(uuid(instance), "running").unwrap();
    }
    server.terminate().unwrap();
    let damaged = bytes(uuid(&created[1]));
    edit(&server, |rows| {
        let key = [b"i", &damaged[..], &[0]].concat();
        let mut row = rows.get(&*key).unwrap().unwrap().value().to_vec();
        flip_bit(&mut row);
        rows.insert(&*key, &*row).unwrap();
    });
    server.run().unwrap();
    let api = server.again(&api);
    let shown = passwords(&api);
    let expected: Vec<_> = created
        .iter()
        .map(|i| i["original_service_password"].clone())
        .collect();
    assert_eq!(shown, [expected[0].clone(), json!(""), expected[2].clone()]);
    for _ in 0..3 {
        let one = api.instance(uuid(&created[1])).is(200);
        assert_eq!(one["original_service_password"], "");
    }
    // A rename is possible in every state: the engine in memory has lost the instance meanwhile.
    let renamed = api.patch(uuid(&created[1]), &json!({ "name": "renamed" }));
    renamed.is(200);
    let log = server.log();
    let lines = log.matches("showing the instance without its password");
    assert_eq!(lines.count(), 1, "{log}");
    server.terminate().unwrap();
    let report = server.cli(&["fsck"]).unwrap_err().to_string();
    let line = format!("{}: ", uuid(&created[1]));
    assert!(report.contains(&line), "{report}");
    assert!(report.contains("does not decrypt its secrets"), "{report}");
    server.run().unwrap();
    let api = server.again(&api);
    let gone = api.delete(uuid(&created[1])).unwrap();
    gone.is(204);
    wait_until("the row is gone", || {
        let events = api.get(&format!("/api/event/?instance={}", uuid(&created[1])))?;
        let last = events
            .expect(200)?
            .as_array()
            .and_then(|all| all.last().cloned());
        Ok(last.filter(|event| event["type"] == "purged"))
    });
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    server.run().unwrap();
}

#[test]
fn a_rotation_replaces_the_key_while_the_server_serves() {
    let (mut server, api) = start();
    for _ in 0..4 {
        api.small_container().unwrap();
    }
    let (before, shown) = (fs::read(key_file(&server)).unwrap(), passwords(&api));
    server.cli(&["secrets", "rotate"]).unwrap();
    let after = fs::read(key_file(&server)).unwrap();
    assert_eq!(after.len(), 32);
    assert_ne!(before, after);
    assert_eq!(passwords(&api), shown);
    // The same without a server, from rows that name no key.
    server.terminate().unwrap();
    forget_key(&server);
    server.cli(&["secrets", "rotate"]).unwrap();
    assert_ne!(fs::read(key_file(&server)).unwrap(), after);
    // The earlier key is of no use any more.
    let current = fs::read(key_file(&server)).unwrap();
    wharf_tests::write_private(&key_file(&server), &after).unwrap();
    let message = refused(&mut server);
    has(&message, "needs the one with the fingerprint");
    wharf_tests::write_private(&key_file(&server), &current).unwrap();
    server.run().unwrap();
    assert_eq!(passwords(&server.again(&api)), shown);
}

#[test]
fn a_rotation_that_is_killed_leaves_every_secret_readable_and_is_completed() {
    let (mut server, mut api) = start();
    for _ in 0..10 {
        api.small_container().unwrap();
    }
    let mut shown = passwords(&api);
    let rotate = |server: &Server| {
        let mut wharf = Command::new(wharf_binary());
        wharf.args(["secrets", "rotate", "--config"]);
        wharf.arg(server.config_path());
        wharf.stdout(Stdio::null()).stderr(Stdio::null());
        wharf.spawn().unwrap()
    };
    for _ in 0..4 {
        // Killed at some point after the new key is in the file, or when the rotation is done.
        let mut rotation = rotate(&server);
        loop {
            let keys = fs::metadata(key_file(&server)).unwrap().len() / 32;
            if keys == 2 || rotation.try_wait().unwrap().is_some() {
                break;
            }
        }
        server.kill().unwrap();
        rotation.wait().unwrap();
        server.run().unwrap();
        api = server.again(&api);
        assert_eq!(passwords(&api), shown);
        let created = api.small_container().unwrap();
        shown.push(created["original_service_password"].clone());
        let oldest = api.list().unwrap()[0].clone();
        api.delete(uuid(&oldest)).is(204);
        shown.remove(0);
    }
    // Interrupted after the first step: the file has the new key, and the database does not know it.
    server.kill().unwrap();
    server.cli(&["secrets", "rotate"]).unwrap();
    let keys = fs::read(key_file(&server)).unwrap();
    assert_eq!(keys.len(), 32);
    let both = [&[9; 32][..], &keys].concat();
    wharf_tests::write_private(&key_file(&server), &both).unwrap();
    server.run().unwrap();
    api = server.again(&api);
    assert_eq!(passwords(&api), shown);
    server.kill().unwrap();
    server.cli(&["secrets", "rotate"]).unwrap();
    assert_eq!(fs::read(key_file(&server)).unwrap(), [9; 32]);
    server.run().unwrap();
    assert_eq!(passwords(&server.again(&api)), shown);
}
