//! Servers and sources that fail.

use super::{ACCESS_KEY_ID, BUCKET, BucketError, Desk, ID, SECRET_ACCESS_KEY, client, desk, noise};
use bytes::Bytes;
use tokio::sync::mpsc;
use wharf_engine::Piece;
use wharf_testkit::object_store::Fault;

/// Uploads, and expects an error that leaves nothing in the bucket.
async fn upload_fails(desk: &Desk) -> BucketError {
    let error = desk.upload(ID, &noise(1, 1 << 20)).await.unwrap_err();
    desk.store.behave();
    assert!(desk.store.uploads().is_empty(), "{error}");
    assert!(!desk.store.file(&format!("wharf/{ID}/content")).exists());
    error
}

#[tokio::test]
async fn a_server_with_too_much_work_gets_its_time() {
    let desk = desk();
    for request in [
        "?uploads",
        "partNumber=1",
        "POST /kept/wharf/0198-a/content?uploadId",
    ] {
        desk.store
            .misbehave(request, 3, Fault::Answer(503, "SlowDown"));
    }
    let manifest = desk.back_up(ID, b"tar").await;
    desk.store
        .misbehave("GET /kept/wharf", 3, Fault::Answer(500, "InternalError"));
    desk.client.verify(&manifest, &desk.key).await.unwrap();
    desk.client.delete(ID).await.unwrap();

    desk.store
        .misbehave("partNumber=1", 9, Fault::Answer(503, "SlowDown"));
    let error = upload_fails(&desk).await;
    assert!(error == BucketError::Throttled && !error.is_final());
}

#[tokio::test]
async fn refusals_have_words() {
    let desk = desk();
    for (status, code, expected) in [
        (403, "AccessDenied", "denied"),
        (507, "", "full"),
        (400, "EntityTooLarge", "full"),
        (301, "PermanentRedirect", "region"),
        (404, "NoSuchBucket", "no such bucket"),
        (400, "Odd", "refused"),
    ] {
        desk.store
            .misbehave("PUT /kept", 1, Fault::Answer(status, code));
        let error = upload_fails(&desk).await;
        assert!(error.is_final(), "{error:?}");
        let words = error.to_string();
        assert!(words.contains(expected), "{words}");
        assert!(!words.contains(ACCESS_KEY_ID), "{words}");
        assert!(words.len() < 300, "{words}");
    }
    let wrong = client(&desk.store.url, BUCKET, "wrong").unwrap();
    assert_eq!(wrong.probe().await.unwrap_err(), BucketError::Keys);
    for endpoint in [
        "",
        "ftp://127.0.0.1",
        "http://10.0.0.1",
        "http://a:b@127.0.0.1",
    ] {
        let refused = match client(endpoint, BUCKET, SECRET_ACCESS_KEY) {
            Ok(client) => client.probe().await,
            Err(error) => Err(error),
        };
        let error = refused.unwrap_err();
        assert!(matches!(error, BucketError::Address(_)), "{error:?}");
    }
    for name in ["", "..", "a/b", "a?b"] {
        assert!(client(&desk.store.url, name, SECRET_ACCESS_KEY).is_err());
    }
}

#[tokio::test]
async fn a_server_that_hangs_or_is_gone_is_not_reachable() {
    let desk = desk();
    desk.store.misbehave("partNumber=1", 1, Fault::Hang);
    desk.upload(ID, b"tar").await.unwrap();
    desk.client.delete(ID).await.unwrap();
    desk.store.misbehave("partNumber=1", 9, Fault::Hang);
    let error = upload_fails(&desk).await;
    assert!(matches!(error, BucketError::Unreachable(_)), "{error:?}");
    let gone = client("http://127.0.0.1:9", BUCKET, SECRET_ACCESS_KEY).unwrap();
    let error = gone.probe().await.unwrap_err();
    assert!(matches!(error, BucketError::Unreachable(_)), "{error:?}");
    assert!(!error.to_string().contains("X-Amz"), "{error}");
}

#[tokio::test]
async fn a_lie_about_a_success_is_noticed() {
    let desk = desk();
    // The server itself misses the part, and forgets the upload.
    desk.store.misbehave("partNumber=1", 1, Fault::Lie);
    desk.upload(ID, b"tar").await.unwrap_err();

    let desk = super::desk();
    let request = "POST /kept/wharf/0198-a/content?uploadId";
    desk.store.misbehave(request, 1, Fault::Lie);
    let error = upload_fails(&desk).await;
    assert!(matches!(error, BucketError::Altered(_)), "{error:?}");
    let sent = desk.upload(ID, b"tar").await.unwrap();
    let manifest = desk.manifest(ID, sent);
    desk.store.misbehave("PUT /kept", 1, Fault::Lie);
    let put = desk.client.put_manifest(ID, &manifest, &desk.key).await;
    assert!(matches!(put.unwrap_err(), BucketError::Altered(_)));
    desk.store.misbehave("PUT /kept", 1, Fault::Lie);
    assert!(desk.client.probe().await.is_err());
}

#[tokio::test]
async fn a_lost_answer_is_no_failure() {
    let desk = desk();
    let request = "POST /kept/wharf/0198-a/content?uploadId";
    desk.store.misbehave(request, 1, Fault::Cut);
    let manifest = desk.back_up(ID, &noise(1, 1 << 20)).await;
    // A content that breaks off goes on where it was.
    desk.store.misbehave("GET /kept", 3, Fault::Cut);
    desk.client.verify(&manifest, &desk.key).await.unwrap();
    desk.store.misbehave("GET /kept", 99, Fault::Cut);
    let (_, error) = desk.read(&manifest).await;
    assert!(
        matches!(error, Some(BucketError::Unreachable(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_source_that_breaks_off_leaves_nothing() {
    let desk = desk();
    for bytes in [0, 20 << 20] {
        let (sender, receiver) = mpsc::channel(1);
        let source = tokio::spawn(async move {
            for piece in noise(1, bytes).chunks(1 << 20) {
                let piece = Bytes::copy_from_slice(piece);
                sender.send(Piece::Data(piece)).await.unwrap();
            }
        });
        let error = desk.client.upload(ID, &desk.key, receiver).await;
        assert_eq!(error.unwrap_err(), BucketError::BrokenOff);
        source.await.unwrap();
        assert!(desk.store.uploads().is_empty());
    }
    assert!(!desk.store.file(&format!("wharf/{ID}/content")).exists());
}

#[tokio::test]
async fn uploads_that_nobody_ends_are_aborted() {
    let desk = desk();
    for id in [ID, "0198-b"] {
        // The abort of a failed upload fails too.
        desk.store
            .misbehave("DELETE /kept", 1, Fault::Answer(500, ""));
        desk.store
            .misbehave("partNumber=1", 1, Fault::Answer(403, ""));
        desk.upload(id, b"tar").await.unwrap_err();
    }
    assert_eq!(desk.store.uploads().len(), 2);
    desk.client.abort_uploads(&[ID.to_owned()]).await.unwrap();
    assert_eq!(desk.store.uploads(), [format!("wharf/{ID}/content")]);
    desk.client.delete(ID).await.unwrap();
    assert!(desk.store.uploads().is_empty());
    // Some servers have no such listing.
    desk.store
        .misbehave("?uploads", 1, Fault::Answer(501, "NotImplemented"));
    desk.client.abort_uploads(&[]).await.unwrap();
}
