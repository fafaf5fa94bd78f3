//! The way of a content into a bucket: hash, compression, encryption, and parts of an upload. A transfer
//! holds two parts in memory.

use super::client::{BucketClient, CONTENT};
use super::error::BucketError;
use super::manifest::hex;
use super::request::Call;
use super::seal::BackupKey;
use bytes::Bytes;
use rustix::process::setpriority_process;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, OwnedPermit, Sender};
use tokio::sync::oneshot;
use wharf_engine::Piece;
use wharf_outbound::reqwest::Method;
use wharf_outbound::reqwest::header::{CONTENT_LENGTH, ETAG};

/// The bytes of a part. Some servers want parts of one size, so most backups have these only.
const PART: usize = 16 << 20;
/// The most parts of an upload.
const MAX_PARTS: usize = 10_000;
/// The parts of one size. The first size has twice as many.
const PARTS_OF_SIZE: usize = 2000;
/// The niceness of the threads that compress and encrypt: users wait for other work.
const NICENESS: i32 = 10;

/// The content of a backup to be made.
pub type ContentReceiver = mpsc::Receiver<Piece>;

/// A content that is in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentContent {
    pub tar_bytes: u64,
    pub stored_bytes: u64,
    /// The hash of the archive in hexadecimal digits.
    pub sha256: String,
    pub gone: Vec<String>,
}

impl BucketClient {
    /// Uploads the content of a backup. A failed upload leaves nothing in the bucket, if its server is in reach.
    pub async fn upload(
        &self,
        id: &str,
        key: &BackupKey,
        content: ContentReceiver,
    ) -> Result<SentContent, BucketError> {
        let object = self.object(id, CONTENT)?;
        let call = Call::new(Method::POST, &object).query("uploads", "");
        let begun = self.ask(&call).await?.xml();
        let upload = super::xml::text(&begun, "UploadId");
        let upload =
            upload.ok_or_else(|| BucketError::Other("the server is none of S3".to_owned()))?;
        let (parts, sealed) = seal(key.clone(), content);
        let sent = self.upload_parts(&object, &upload, parts, sealed).await;
        if sent.is_err() {
            // If this fails too, `abort_uploads` finds it.
            let call = Call::new(Method::DELETE, &object).query("uploadId", &upload);
            let _ = self.ask_once(&call).await;
        }
        sent
    }

    async fn upload_parts(
        &self,
        object: &str,
        upload: &str,
        mut parts: mpsc::Receiver<Bytes>,
        sealed: oneshot::Receiver<Result<SentContent, BucketError>>,
    ) -> Result<SentContent, BucketError> {
        let mut list = String::from("<CompleteMultipartUpload>");
        let mut number = 0;
        let mut stored = 0;
        while let Some(part) = parts.recv().await {
            number += 1;
            stored += part.len() as u64;
            let text = number.to_string();
            let call = Call::new(Method::PUT, object).query("uploadId", upload);
            let call = call.query("partNumber", &text).body(part);
            let answer = self.ask(&call).await?;
            let etag = answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
            let etag = etag.ok_or_else(|| BucketError::Other("a part has no ETag".to_owned()))?;
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;");
            let _ = write!(
                list,
                "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
            );
        }
        let sealed = sealed.await;
        let sent = sealed.map_err(|_| BucketError::Other("the encryption failed".to_owned()))??;
        list.push_str("</CompleteMultipartUpload>");
        let call = Call::new(Method::POST, object).query("uploadId", upload);
        let completed = self.ask(&call.body(list.into())).await;
        // The answer may be lost, or be a lie: the object itself decides.
        match (self.stored_bytes(object).await, completed) {
            (Ok(kept), _) if kept == stored => Ok(sent),
            (_, Err(error)) => Err(error),
            (Ok(_) | Err(BucketError::Missing(_)), Ok(_)) => {
                Err(BucketError::altered("the server did not keep its content"))
            }
            (Err(error), Ok(_)) => Err(error),
        }
    }

    /// The size of an object.
    async fn stored_bytes(&self, object: &str) -> Result<u64, BucketError> {
        let answer = self.ask(&Call::new(Method::HEAD, object)).await?;
        let length = answer.headers.get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        length.ok_or_else(|| BucketError::Other("an object has no size".to_owned()))
    }
}

/// Hashes, compresses and encrypts a content on a thread of its own, and returns the parts.
fn seal(
    key: BackupKey,
    mut content: ContentReceiver,
) -> (
    mpsc::Receiver<Bytes>,
    oneshot::Receiver<Result<SentContent, BucketError>>,
) {
    // The one place is taken before a part is filled, so there are two parts: that, and the one on its way.
    let (sender, receiver) = mpsc::channel(1);
    let runtime = Handle::current();
    let sealing = move || {
        let parts = Parts {
            sender,
            runtime,
            part: None,
            begun: 0,
            bytes: 0,
        };
        let mut sent = SentContent {
            tar_bytes: 0,
            stored_bytes: 0,
            sha256: String::new(),
            gone: Vec::new(),
        };
        let mut hash = Sha256::new();
        let mut writer = key.sealed(parts).map_err(failed)?;
        loop {
            match content.blocking_recv() {
                Some(Piece::Gone(gone)) => sent.gone.extend(gone),
                Some(Piece::Data(bytes)) => {
                    hash.update(&bytes);
                    sent.tar_bytes += bytes.len() as u64;
                    writer.write_all(&bytes).map_err(failed)?;
                }
                Some(Piece::Whole) => break,
                None => return Err(BucketError::BrokenOff),
            }
        }
        let finished = writer.finish().and_then(|writer| writer.finish());
        let mut parts = finished.map_err(failed)?;
        parts.send();
        sent.stored_bytes = parts.bytes;
        sent.sha256 = hex(&hash.finalize());
        Ok(sent)
    };
    let (ended, sealed) = oneshot::channel();
    // Without a thread, the channel tells that the encryption failed.
    let _ = thread::Builder::new()
        .name("backup".to_owned())
        .spawn(move || {
            let _ = setpriority_process(None, NICENESS);
            let _ = ended.send(sealing());
        });
    (receiver, sealed)
}

/// The error of a writer: that of a part, or that the upload ended first.
fn failed(error: io::Error) -> BucketError {
    let own = error.into_inner().and_then(|own| own.downcast().ok());
    own.map_or(BucketError::BrokenOff, |own| *own)
}

/// Cuts what is written into parts.
struct Parts {
    sender: Sender<Bytes>,
    runtime: Handle,
    /// The part that is being filled, and its place.
    part: Option<(Vec<u8>, OwnedPermit<Bytes>)>,
    /// The number of parts so far.
    begun: usize,
    /// The bytes of all parts so far.
    bytes: u64,
}

impl Parts {
    /// Returns the part to fill, with the bytes it has room for.
    fn part(&mut self) -> io::Result<(&mut Vec<u8>, usize)> {
        if self.part.is_none() {
            if self.begun >= MAX_PARTS {
                let full = "a backup has at most 500 GiB after compression".to_owned();
                return Err(io::Error::other(BucketError::Full(full)));
            }
            let place = self.runtime.block_on(self.sender.clone().reserve_owned());
            let place = place.map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.part = Some((Vec::with_capacity(part_bytes(self.begun)), place));
            self.begun += 1;
        }
        let size = part_bytes(self.begun - 1);
        match &mut self.part {
            Some((part, _)) => {
                let room = size - part.len();
                Ok((part, room))
            }
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Sends the part that is being filled.
    fn send(&mut self) {
        if let Some((part, place)) = self.part.take() {
            place.send(part.into());
        }
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (part, room) = self.part()?;
        let (now, _) = bytes.split_at(room.min(bytes.len()));
        part.extend_from_slice(now);
        if now.len() == room {
            self.send();
        }
        self.bytes += now.len() as u64;
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a part, which doubles so that 10,000 suffice for 500 GiB.
fn part_bytes(number: usize) -> usize {
    PART << (number.saturating_sub(PARTS_OF_SIZE) / PARTS_OF_SIZE)
}

#[cfg(test)]
mod tests {
    use super::{MAX_PARTS, PART, part_bytes};

    #[test]
    fn parts_suffice_for_500_gib_and_are_of_one_size_up_to_62() {
        assert_eq!(part_bytes(3999), PART);
        assert_eq!(part_bytes(4000), 2 * PART);
        let all: u64 = (0..MAX_PARTS).map(|n| part_bytes(n) as u64).sum();
        assert_eq!(all, 500 << 30);
    }
}
