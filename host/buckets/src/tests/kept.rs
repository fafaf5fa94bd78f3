//! Backups that are kept and come back.

use super::{ACCESS_KEY_ID, BackupKey, BucketError, ID, SECRET_ACCESS_KEY, client, desk, noise};
use std::process::{Command, Stdio};
use wharf_domain::secret::SecretText;
use wharf_testkit::packages::{self, Need};

#[tokio::test]
async fn a_backup_comes_back() {
    let desk = desk();
    desk.client.probe().await.unwrap();
    let content = noise(1, 40 << 20);
    let mut manifest = desk.back_up(ID, &content).await;
    assert_eq!(manifest.tar_bytes, content.len() as u64);
    assert_eq!(manifest.gone, ["opt"]);
    let requests = desk.store.requests();
    let parts = requests.iter().filter(|line| line.contains("partNumber="));
    assert_eq!(parts.count(), 3);

    let listed = desk.client.manifests().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].0, ID);
    let read = desk.client.manifest(ID, &desk.key).await.unwrap();
    manifest.mac.clone_from(&read.mac);
    assert_eq!(read, manifest);
    assert!(desk.read(&manifest).await == (content, None));
    desk.client.verify(&manifest, &desk.key).await.unwrap();

    desk.client.delete(ID).await.unwrap();
    desk.client.delete(ID).await.unwrap();
    assert!(desk.client.manifests().await.unwrap().is_empty());
    let missing = desk.client.manifest(ID, &desk.key).await.unwrap_err();
    assert_eq!(missing, BucketError::Missing("manifest of this backup"));
    let missing = desk.client.verify(&manifest, &desk.key).await.unwrap_err();
    assert_eq!(missing, BucketError::Missing("content of this backup"));
}

#[tokio::test]
async fn nothing_and_zeros_come_back() {
    let desk = desk();
    for content in [Vec::new(), vec![0; 3 << 20]] {
        let manifest = desk.back_up(ID, &content).await;
        assert!(manifest.stored_bytes < 10_000);
        assert!(desk.read(&manifest).await == (content, None));
    }
}

#[tokio::test]
async fn a_reader_may_be_dropped() {
    let desk = desk();
    let manifest = desk.back_up(ID, &noise(2, 8 << 20)).await;
    let mut content = desk.client.open(&manifest, &desk.key).await.unwrap();
    content.recv().await.unwrap().unwrap();
    // The end of the runtime waits for the thread behind it.
}

#[test]
fn a_passphrase_opens_the_key() {
    let key = BackupKey::generate();
    let right = SecretText::new("correct horse");
    let wrapped = key.wrap(&right).unwrap();
    let opened = BackupKey::unwrap(&wrapped, &right).unwrap().unwrap();
    assert_eq!(opened.text(), key.text());
    let wrong = SecretText::new("correct house");
    assert!(BackupKey::unwrap(&wrapped, &wrong).unwrap().is_none());
    for damaged in ["", "age", &wrapped[..wrapped.len() / 2]] {
        let error = BackupKey::unwrap(damaged, &right).unwrap_err();
        assert!(matches!(error, BucketError::Altered(_)), "{error:?}");
    }
    assert!(BackupKey::from_text(&SecretText::new("AGE-SECRET-KEY-1")).is_err());
}

#[test]
fn the_work_of_a_passphrase_is_bounded() {
    // Made by `age -p` with the work factor 18.
    let key = BackupKey::generate();
    let passphrase = SecretText::new("x");
    let mut recipient = age::scrypt::Recipient::new("x".to_owned().into());
    recipient.set_work_factor(18);
    let wrapped = age::encrypt_and_armor(&recipient, key.text().expose().as_bytes()).unwrap();
    assert!(BackupKey::unwrap(&wrapped, &passphrase).is_err());
}

#[tokio::test]
async fn other_programs_open_a_backup() {
    let need = |program| Need {
        program,
        package: program,
        why: "opening a backup without Wharf",
    };
    packages::ensure(&[need("age"), need("zstd")]).unwrap();
    let desk = desk();
    let content = noise(3, 2 << 20);
    desk.back_up(ID, &content).await;
    let object = desk.store.file(&format!("wharf/{ID}/content"));
    let identity = desk.store.file("identity");
    std::fs::write(&identity, desk.key.text().expose()).unwrap();
    let mut age = Command::new("age")
        .arg("-d")
        .arg("-i")
        .args([&identity, &object])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let opened = Command::new("zstd")
        .args(["-d", "-c"])
        .stdin(age.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(age.wait().unwrap().success());
    assert!(opened.stdout == content);
}

#[test]
fn nothing_shows_a_secret() {
    let key = BackupKey::generate();
    let shown = format!("{key:?}");
    assert!(!shown.contains(key.text().expose()), "{shown}");
    let client = client("http://127.0.0.1:9", "kept", SECRET_ACCESS_KEY).unwrap();
    let shown = format!("{:?}", client.keys);
    assert!(!shown.contains(SECRET_ACCESS_KEY) && !shown.contains(ACCESS_KEY_ID));
}
