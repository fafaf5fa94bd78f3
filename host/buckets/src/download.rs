//! The way of a content out of a bucket: decryption, unpacking, and the proof that it is whole.

use super::client::{BucketClient, CONTENT};
use super::error::BucketError;
use super::manifest::{Manifest, hex};
use super::request::{Call, jittered};
use super::seal::BackupKey;
use bytes::{Buf as _, Bytes};
use sha2::{Digest as _, Sha256};
use std::io::{self, Read};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use wharf_outbound::reqwest::{Method, Response};

/// The content of a backup. An error in place of the end means that nothing of it may be used.
pub type ContentReader = Receiver<Result<Bytes, BucketError>>;

/// Pieces between two steps.
const PIECES: usize = 8;
/// The most bytes of a piece.
const PIECE: usize = 128 << 10;

impl BucketClient {
    /// Reads the content of a backup. Its last piece comes once all of it was right.
    pub async fn open(
        &self,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<ContentReader, BucketError> {
        let object = self.object(&manifest.id, CONTENT)?;
        let first = self.content(&object, 0, manifest.stored_bytes).await?;
        let (stored, fetched) = mpsc::channel(PIECES);
        let (sender, reader) = mpsc::channel(PIECES);
        let fetch = Fetch {
            client: self.clone(),
            object,
            size: manifest.stored_bytes,
        };
        tokio::spawn(fetch.run(first, stored));
        let (manifest, key) = (manifest.clone(), key.clone());
        spawn_blocking(move || {
            let input = Fetched {
                pieces: fetched,
                piece: Bytes::new(),
            };
            if let Err(error) = unseal(&manifest, &key, input, &sender) {
                let _ = sender.blocking_send(Err(error));
            }
        });
        Ok(reader)
    }

    /// Reads the content of a backup, and checks it.
    pub async fn verify(&self, manifest: &Manifest, key: &BackupKey) -> Result<(), BucketError> {
        let mut content = self.open(manifest, key).await?;
        while let Some(piece) = content.recv().await {
            piece?;
        }
        Ok(())
    }

    /// Begins to read an object of a size, from a byte on.
    async fn content(&self, object: &str, from: u64, size: u64) -> Result<Response, BucketError> {
        let call = Call {
            from,
            ..Call::new(Method::GET, object)
        };
        let response = self.repeat(|| self.send(&call)).await;
        let response = response.map_err(|error| match error {
            BucketError::Missing(_) => BucketError::Missing("content of this backup"),
            other => other,
        })?;
        if response.content_length() != Some(size - from) {
            return Err(BucketError::altered("its content has another size"));
        }
        Ok(response)
    }
}

/// The reading of an object, which goes on after a connection breaks off.
struct Fetch {
    client: BucketClient,
    object: String,
    size: u64,
}

impl Fetch {
    async fn run(self, mut response: Response, stored: Sender<Result<Bytes, BucketError>>) {
        let mut at = 0;
        let mut failed = 0;
        while at < self.size {
            let error = match self.client.chunk(&mut response).await {
                Ok(Some(piece)) => {
                    at += piece.len() as u64;
                    failed = 0;
                    if stored.send(Ok(piece)).await.is_err() {
                        return;
                    }
                    continue;
                }
                Ok(None) => BucketError::Unreachable("the answer ended early".to_owned()),
                Err(error) => error,
            };
            failed += 1;
            let next = if failed < self.client.patience.tries {
                sleep(jittered(self.client.patience.pause * (1 << failed))).await;
                self.client.content(&self.object, at, self.size).await
            } else {
                Err(error)
            };
            match next {
                Ok(next) => response = next,
                Err(error) => {
                    let _ = stored.send(Err(error)).await;
                    return;
                }
            }
        }
    }
}

/// The fetched bytes, for the thread that decrypts them.
struct Fetched {
    pieces: Receiver<Result<Bytes, BucketError>>,
    piece: Bytes,
}

impl Read for Fetched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len());
        let (now, _) = buffer.split_at_mut(length);
        self.piece.copy_to_slice(now);
        Ok(length)
    }
}

/// Decrypts, unpacks and proves a content. The reader's end ends it.
fn unseal(
    manifest: &Manifest,
    key: &BackupKey,
    input: Fetched,
    sender: &Sender<Result<Bytes, BucketError>>,
) -> Result<(), BucketError> {
    let mut content = key.opened(input).map_err(unreadable)?;
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut held = Bytes::new();
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let mut limited = (&mut content).take(PIECE as u64);
        if limited.read_to_end(&mut piece).map_err(unreadable)? == 0 {
            break;
        }
        bytes += piece.len() as u64;
        if bytes > manifest.tar_bytes {
            return Err(BucketError::altered("its content is longer than it was"));
        }
        hash.update(&piece);
        let last = std::mem::replace(&mut held, piece.into());
        if !last.is_empty() && sender.blocking_send(Ok(last)).is_err() {
            return Ok(());
        }
    }
    if bytes != manifest.tar_bytes || hex(&hash.finalize()) != manifest.sha256 {
        return Err(BucketError::altered("its content is not what it was"));
    }
    if !held.is_empty() {
        let _ = sender.blocking_send(Ok(held));
    }
    Ok(())
}

/// The error of the bucket, or that its content is not right.
fn unreadable(error: io::Error) -> BucketError {
    let own = error.into_inner().and_then(|own| own.downcast().ok());
    own.map_or_else(
        || BucketError::altered("its content cannot be decrypted"),
        |own| *own,
    )
}
