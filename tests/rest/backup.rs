//! `wharf backup` and `wharf restore`, under load and killed.

use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, has, start, start_under, uuid};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Api, Server, WITHOUT_RATES};

fn names(api: &Api) -> BTreeSet<String> {
    let list = api.list().unwrap();
    list.iter().map(|i| uuid(i).to_owned()).collect()
}

/// Moves the database away and restores a backup.
fn restore(server: &mut Server, file: &Path) {
    let database = server.data_dir().join("wharf.redb");
    let file = file.to_str().unwrap();
    let refused = server.cli(&["restore", file]).unwrap_err().to_string();
    assert!(refused.contains("server is running"), "{refused}");
    server.terminate().unwrap();
    let refused = server.cli(&["restore", file]).unwrap_err().to_string();
    has(&refused, "exists and is never replaced");
    fs::remove_file(&database).unwrap();
    server.cli(&["restore", file]).unwrap();
    server.cli(&["fsck"]).unwrap();
    server.run().unwrap();
}

#[test]
fn a_backup_under_load_is_a_database_of_one_moment() {
    let (mut server, api) = start_under(WITHOUT_RATES, "");
    let dir = tempfile::tempdir().unwrap();
    // Before a backup begins, and after it has ended.
    let acknowledged = Mutex::new(Vec::<Value>::new());
    let stop = AtomicBool::new(false);
    let mut backups = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let created = api.small_container().unwrap();
                acknowledged.lock().unwrap().push(created);
                let oldest = {
                    let mut made = acknowledged.lock().unwrap();
                    (made.len() > 6).then(|| made.remove(0))
                };
                if let Some(oldest) = oldest {
                    api.delete(uuid(&oldest)).is(204);
                }
            }
        });
        for n in 0..5 {
            let file = dir.path().join(format!("backup-{n}"));
            let out = server.cli(&["backup", file.to_str().unwrap()]).unwrap();
            assert!(out.contains("need the key with the fingerprint"), "{out}");
            backups.push(file);
        }
        stop.store(true, Ordering::SeqCst);
    });
    let last = dir.path().join("last");
    server.cli(&["backup", last.to_str().unwrap()]).unwrap();
    let again = server.cli(&["backup", last.to_str().unwrap()]).unwrap_err();
    has(&again, "exists and is never replaced");
    let key = fs::read(server.data_dir().join("secret.key")).unwrap();
    let kept = fs::read(&last).unwrap();
    assert!(
        !kept.windows(32).any(|part| part == key),
        "the key is in the backup"
    );
    let (shown, list) = (names(&api), api.list().unwrap());
    for backup in &backups {
        restore(&mut server, backup);
        server.again(&api).list().unwrap();
    }
    restore(&mut server, &last);
    let api = server.again(&api);
    assert_eq!(names(&api), shown);
    for instance in list {
        let one = api.instance(uuid(&instance)).is(200);
        let field = "original_service_password";
        assert_eq!(one[field], instance[field]);
    }
}

#[test]
fn a_backup_that_is_killed_leaves_no_file_of_its_name() {
    let (mut server, api) = start();
    for _ in 0..3 {
        api.small_container().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    for n in 0..4 {
        let file = dir.path().join(format!("backup-{n}"));
        let mut wharf = Command::new(wharf_binary());
        wharf.arg("backup").arg(&file).arg("--config");
        wharf.arg(server.config_path());
        wharf.stdout(Stdio::null()).stderr(Stdio::null());
        let mut backup = wharf.spawn().unwrap();
        // Killed at some point after the first byte.
        while fs::read_dir(dir.path()).unwrap().count() == 0 && backup.try_wait().unwrap().is_none()
        {
        }
        server.kill().unwrap();
        backup.wait().unwrap();
        let complete = file.exists();
        server.run().unwrap();
        if complete {
            restore(&mut server, &file);
        }
        for entry in fs::read_dir(dir.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
    assert_eq!(server.again(&api).list().unwrap().len(), 3);
}

#[test]
fn only_a_whole_backup_is_restored() {
    let (mut server, api) = start();
    api.small_container().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    server.cli(&["backup", file.to_str().unwrap()]).unwrap();
    server.terminate().unwrap();
    let database = server.data_dir().join("wharf.redb");
    let kept = dir.path().join("kept");
    fs::rename(&database, &kept).unwrap();
    let whole = fs::read(&file).unwrap();
    let half = dir.path().join("half");
    for content in [&whole[..0], &whole[..whole.len() / 2], b"something else"] {
        fs::write(&half, content).unwrap();
        let refused = server
            .cli(&["restore", half.to_str().unwrap()])
            .unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("half"), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        assert!(!database.exists(), "{text}");
    }
    server.cli(&["restore", file.to_str().unwrap()]).unwrap();
    server.run().unwrap();
}

#[test]
fn a_restore_says_which_access_it_brings_back_and_ends_it_when_asked() {
    let (mut server, ann) = start();
    let instance = ann.small_container().unwrap();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let second = server.cli(&["key", "new", ANN, "--name", "lost"]).unwrap();
    let lost = Api::new(server.base_url(), second.trim());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let file = file.to_str().unwrap();
    server.cli(&["backup", file]).unwrap();
    let id = second.trim().split('_').nth(1).unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    let new = json!({ "current": PASSWORD, "new": "another long password" });
    browser.send("POST", "/auth/password/", &new).is(204);
    let restore = |server: &mut Server, more: &[&str]| {
        server.terminate().unwrap();
        fs::remove_file(server.data_dir().join("wharf.redb")).unwrap();
        let out = server.cli(&[&["restore", file], more].concat()).unwrap();
        server.run().unwrap();
        out
    };
    let out = restore(&mut server, &[]);
    for words in [
        "revoked keys",
        "earlier passwords",
        "wharf user end-access --all",
    ] {
        has(&out, words);
    }
    assert_eq!(server.again(&lost).list().unwrap().len(), 1);
    ConsoleBrowser::new(&server).sign_in(PASSWORD);
    let out = restore(&mut server, &["--end-access"]);
    assert_eq!(
        out.matches("ended: keys 2, sessions 1, password 1").count(),
        1,
        "{out}"
    );
    for api in [&ann, &lost] {
        assert_eq!(server.again(api).get("/api/instance/").unwrap().status, 401);
    }
    let body = json!({ "email": ANN, "password": PASSWORD });
    ConsoleBrowser::new(&server)
        .send("POST", "/auth/sign-in/", &body)
        .is(400);
    let ann = server.user(ANN).unwrap();
    assert_eq!(uuid(&ann.list().unwrap()[0]), uuid(&instance));
    // A running server refuses the keys at once.
    server.cli(&["user", "end-access", ANN]).unwrap();
    assert_eq!(ann.get("/api/instance/").unwrap().status, 401);
    let audit = server.cli(&["audit", "list"]).unwrap();
    assert_eq!(audit.matches("user.end-access").count(), 2, "{audit}");
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    server.run().unwrap();
}
