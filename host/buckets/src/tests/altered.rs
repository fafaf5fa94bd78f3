//! Objects that someone altered.

use super::{BackupKey, BucketError, Desk, FORMAT, ID, Manifest, desk, noise};
use std::fs;
use std::path::PathBuf;

fn is_altered(error: &BucketError) -> bool {
    matches!(error, BucketError::Altered(_)) && error.is_final()
}

fn content(desk: &Desk, id: &str) -> PathBuf {
    desk.store.file(&format!("wharf/{id}/content"))
}

/// A content that is not right has an error in place of its end, and its last piece does not come.
async fn assert_altered(desk: &Desk, manifest: &Manifest, what: &str) {
    let (bytes, error) = desk.read(manifest).await;
    let error = error.unwrap_or_else(|| panic!("{what}: no error"));
    assert!(is_altered(&error), "{what}: {error:?}");
    assert!((bytes.len() as u64) < manifest.tar_bytes, "{what}");
    let error = desk.client.verify(manifest, &desk.key).await.unwrap_err();
    assert!(is_altered(&error), "{what}: {error:?}");
}

#[tokio::test]
async fn an_altered_content_is_noticed() {
    let desk = desk();
    let manifest = desk.back_up(ID, &noise(1, 1 << 20)).await;
    let object = content(&desk, ID);
    let whole = fs::read(&object).unwrap();
    for at in [0, 60, 500, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&object, flipped).unwrap();
        assert_altered(&desk, &manifest, &format!("byte {at}")).await;
    }
    for length in [0, 100, whole.len() - 1] {
        fs::write(&object, &whole[..length]).unwrap();
        assert_altered(&desk, &manifest, &format!("cut to {length}")).await;
        // So is one whose manifest has the size of the rest.
        let shorter = Manifest {
            stored_bytes: length as u64,
            ..manifest.clone()
        };
        assert_altered(&desk, &shorter, &format!("{length} bytes")).await;
    }
    fs::write(&object, [&whole[..], b"more"].concat()).unwrap();
    assert_altered(&desk, &manifest, "longer").await;

    // Another backup with this key and of this size, and an earlier content of this one.
    desk.back_up("0198-b", &noise(2, 1 << 20)).await;
    fs::copy(content(&desk, "0198-b"), &object).unwrap();
    assert_altered(&desk, &manifest, "another backup").await;
    let later = desk.back_up(ID, &noise(3, 1 << 20)).await;
    fs::write(&object, &whole).unwrap();
    assert_altered(&desk, &later, "earlier parts").await;
    desk.client.verify(&manifest, &desk.key).await.unwrap();
}

#[tokio::test]
async fn a_content_that_grows_is_refused_on_its_way() {
    let desk = desk();
    let mut manifest = desk.back_up(ID, &vec![0; 64 << 20]).await;
    manifest.tar_bytes = 1 << 20;
    let (bytes, error) = desk.read(&manifest).await;
    assert!(is_altered(&error.unwrap()));
    assert!(bytes.len() <= 1 << 20);
    manifest.tar_bytes = 65 << 20;
    assert_altered(&desk, &manifest, "shorter").await;
}

#[tokio::test]
async fn a_manifest_that_its_key_did_not_make_is_refused() {
    let desk = desk();
    let manifest = desk.back_up(ID, b"tar").await;
    let other = BackupKey::generate();
    let error = desk.client.manifest(ID, &other).await.unwrap_err();
    assert!(is_altered(&error), "{error:?}");
    let (_, error) = {
        let desk = Desk { key: other, ..desk };
        let read = desk.read(&manifest).await;
        (desk, read.1)
    };
    assert!(is_altered(&error.unwrap()));
}

#[tokio::test]
async fn an_altered_manifest_is_refused() {
    let desk = desk();
    desk.back_up(ID, b"tar").await;
    desk.back_up("0198-b", b"tar").await;
    let file = desk.store.file(&format!("wharf/{ID}/manifest.json"));
    let json = fs::read_to_string(&file).unwrap();
    let manifest = desk.client.manifest(ID, &desk.key).await.unwrap();
    for altered in [
        json.replace("debian", "ubuntu"),
        json.replace("\"opt\"", "\"etc\""),
        json.replace(&manifest.mac, ""),
        json.replace(&manifest.mac, "zz"),
        json[..json.len() / 2].to_owned(),
        fs::read_to_string(desk.store.file("wharf/0198-b/manifest.json")).unwrap(),
    ] {
        assert_ne!(altered, json);
        fs::write(&file, &altered).unwrap();
        let error = desk.client.manifest(ID, &desk.key).await.unwrap_err();
        assert!(is_altered(&error), "{altered}: {error:?}");
    }
    fs::write(
        &file,
        json.replace(&format!("\"format\":{FORMAT}"), "\"format\":2"),
    )
    .unwrap();
    let error = desk.client.manifest(ID, &desk.key).await.unwrap_err();
    assert!(error.to_string().contains("format"), "{error}");
    fs::write(&file, vec![b' '; 600 << 10]).unwrap();
    assert!(desk.client.manifest(ID, &desk.key).await.is_err());
    // The others are still found.
    let listed = desk.client.manifests().await.unwrap();
    assert_eq!(listed.len(), 1);
}
