//! The objects of a bucket: `PREFIX/ID/content` and `PREFIX/ID/manifest.json`.

use super::error::BucketError;
use super::manifest::{Manifest, hex};
use super::request::{Call, Patience};
use super::seal::BackupKey;
use super::xml::{elements, text};
use bytes::Bytes;
use rusty_s3::{Bucket, UrlStyle};
use std::fmt;
use wharf_domain::backup::BucketAddress;
use wharf_domain::secret::SecretText;
use wharf_outbound::CheckedClient;
use wharf_outbound::reqwest::{Method, Url};

/// The object of a backup's content.
pub const CONTENT: &str = "content";
const MANIFEST: &str = "manifest.json";

/// The most bytes of a manifest, which names up to 4096 entries of an image.
const MAX_MANIFEST: usize = 512 << 10;
/// The most manifests of a bucket, and their most bytes together.
const MAX_MANIFESTS: usize = 10_000;
const MAX_MANIFESTS_BYTES: usize = 64 << 20;
/// The most pages of a listing, of usually 1000 lines.
const MAX_PAGES: usize = 40;

/// The keys of a user to a bucket.
#[derive(Clone)]
pub struct BucketKeys {
    pub access_key_id: SecretText,
    pub secret_access_key: SecretText,
}

impl fmt::Debug for BucketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(keys of a bucket)")
    }
}

/// A bucket of a user.
#[derive(Clone)]
pub struct BucketClient {
    pub(crate) http: CheckedClient,
    pub(crate) bucket: Bucket,
    pub(crate) keys: BucketKeys,
    pub(crate) patience: Patience,
    prefix: String,
}

impl BucketClient {
    /// The client for a user who waits, and can try again.
    pub fn without_retries(mut self) -> Self {
        self.patience.tries = 1;
        self
    }

    /// A bucket at an address. Nothing is sent yet.
    pub fn new(
        address: &BucketAddress,
        keys: BucketKeys,
        http: CheckedClient,
    ) -> Result<Self, BucketError> {
        let refused = |reason: &str| BucketError::Address(reason.to_owned());
        let endpoint = Url::parse(&address.endpoint);
        let endpoint =
            endpoint.map_err(|_| refused("must be a URL such as https://s3.example.com"))?;
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(refused("must have no user name and no password"));
        }
        if !is_plain(&address.bucket, 3..=63) {
            return Err(refused("has no valid name of a bucket"));
        }
        if !is_plain(&address.region, 1..=63) {
            return Err(refused("has no valid region"));
        }
        if !address
            .prefix
            .split('/')
            .all(|part| is_plain(part, 1..=200))
        {
            return Err(refused("has no valid prefix"));
        }
        // An empty text would be in every answer.
        if keys.access_key_id.expose().is_empty() || keys.secret_access_key.expose().is_empty() {
            return Err(BucketError::Keys);
        }
        let (name, region) = (address.bucket.clone(), address.region.clone());
        let bucket = Bucket::new(endpoint, UrlStyle::Path, name, region);
        Ok(Self {
            http,
            bucket: bucket.map_err(|_| refused("must be a URL with https:// and a host"))?,
            keys,
            patience: Patience::default(),
            prefix: format!("{}/", address.prefix),
        })
    }

    /// Proves the bucket: it writes, lists, reads and deletes an object.
    pub async fn probe(&self) -> Result<(), BucketError> {
        let mut content = [0; 16];
        getrandom::fill(&mut content)
            .map_err(|_| BucketError::Other("there are no random numbers".to_owned()))?;
        let object = format!("{}wharf-probe-{}", self.prefix, hex(&content));
        self.put(&object, content.to_vec().into()).await?;
        let listed = self.list(&object).await;
        let read = self.get(&object, content.len()).await;
        self.remove(&object).await?;
        if listed? != [object] || read? != content.as_slice() {
            let message = "the server did not keep a test object";
            return Err(BucketError::Other(message.to_owned()));
        }
        Ok(())
    }

    /// Returns the manifests of complete backups with their ids. Nothing proves them yet.
    pub async fn manifests(&self) -> Result<Vec<(String, Bytes)>, BucketError> {
        let mut manifests = Vec::new();
        let mut bytes = 0;
        for object in self.list(&self.prefix).await? {
            let Some(id) = self.id_of(&object, MANIFEST) else {
                continue;
            };
            let manifest = match self.get(&object, MAX_MANIFEST).await {
                Ok(manifest) => manifest,
                // It was deleted meanwhile, or is none of Wharf's.
                Err(BucketError::Missing(_) | BucketError::Altered(_)) => continue,
                Err(error) => return Err(error),
            };
            bytes += manifest.len();
            if manifests.len() >= MAX_MANIFESTS || bytes > MAX_MANIFESTS_BYTES {
                return Err(BucketError::Other(
                    "the bucket has too many backups".to_owned(),
                ));
            }
            manifests.push((id.to_owned(), manifest));
        }
        Ok(manifests)
    }

    /// Writes the manifest of a backup, with its code, and reads it back.
    pub async fn put_manifest(
        &self,
        id: &str,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<(), BucketError> {
        let object = self.object(id, MANIFEST)?;
        let json = Bytes::from(manifest.signed(key)?);
        if json.len() > MAX_MANIFEST {
            return Err(BucketError::Other("the manifest is too large".to_owned()));
        }
        self.put(&object, json.clone()).await?;
        match self.get(&object, MAX_MANIFEST).await {
            Ok(kept) if kept == json => Ok(()),
            Ok(_) | Err(BucketError::Missing(_)) => {
                Err(BucketError::altered("the server did not keep its manifest"))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the manifest of a backup, which was made with this key.
    pub async fn manifest(&self, id: &str, key: &BackupKey) -> Result<Manifest, BucketError> {
        let json = self.get(&self.object(id, MANIFEST)?, MAX_MANIFEST).await;
        let json = json.map_err(|error| match error {
            BucketError::Missing(_) => BucketError::Missing("manifest of this backup"),
            other => other,
        })?;
        let manifest = Manifest::parse(&json)?;
        manifest.check(id, key)?;
        Ok(manifest)
    }

    /// Deletes a backup, or what there is of it.
    pub async fn delete(&self, id: &str) -> Result<(), BucketError> {
        // Without its manifest it is no backup any more.
        self.remove(&self.object(id, MANIFEST)?).await?;
        self.abort(|of| of == id).await?;
        self.remove(&self.object(id, CONTENT)?).await
    }

    /// Aborts the uploads of all backups but these.
    pub async fn abort_uploads(&self, keep: &[String]) -> Result<(), BucketError> {
        self.abort(|id| !keep.iter().any(|kept| kept == id)).await
    }

    async fn abort(&self, ends: impl Fn(&str) -> bool) -> Result<(), BucketError> {
        for (object, upload) in self.uploads().await? {
            if self.id_of(&object, CONTENT).is_some_and(&ends) {
                let call = Call::new(Method::DELETE, &object).query("uploadId", &upload);
                gone(self.ask(&call).await.map(|_| ()))?;
            }
        }
        Ok(())
    }

    /// Returns the objects whose names begin with a text.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        let mut objects = Vec::new();
        let mut next = String::new();
        for _ in 0..MAX_PAGES {
            let mut call = Call::new(Method::GET, "").query("list-type", "2");
            call = call.query("prefix", prefix);
            if !next.is_empty() {
                call = call.query("continuation-token", &next);
            }
            let xml = self.ask(&call).await?.xml();
            if !xml.contains("<ListBucketResult") {
                return Err(BucketError::Other("the server is none of S3".to_owned()));
            }
            let keys = elements(&xml, "Contents").filter_map(|line| text(line, "Key"));
            objects.extend(keys);
            match text(&xml, "NextContinuationToken") {
                Some(token) if !token.is_empty() => next = token,
                _ => return Ok(objects),
            }
        }
        Err(BucketError::Other(
            "the bucket has too many objects".to_owned(),
        ))
    }

    /// Returns the objects and ids of uploads that have not ended.
    async fn uploads(&self) -> Result<Vec<(String, String)>, BucketError> {
        let mut uploads = Vec::new();
        let (mut key, mut upload) = (String::new(), String::new());
        for _ in 0..MAX_PAGES {
            let mut call = Call::new(Method::GET, "").query("uploads", "");
            call = call.query("prefix", &self.prefix);
            if !key.is_empty() {
                call = call.query("key-marker", &key);
                call = call.query("upload-id-marker", &upload);
            }
            let xml = match self.ask(&call).await {
                Ok(answer) => answer.xml(),
                Err(error) if error == BucketError::not_implemented() => break,
                Err(error) => return Err(error),
            };
            let lines = elements(&xml, "Upload");
            uploads.extend(lines.filter_map(|l| Some((text(l, "Key")?, text(l, "UploadId")?))));
            match (
                text(&xml, "NextKeyMarker"),
                text(&xml, "NextUploadIdMarker"),
            ) {
                (Some(k), Some(u)) if text(&xml, "IsTruncated").is_some_and(|t| t == "true") => {
                    (key, upload) = (k, u);
                }
                _ => break,
            }
        }
        Ok(uploads)
    }

    async fn put(&self, object: &str, content: Bytes) -> Result<(), BucketError> {
        let call = Call::new(Method::PUT, object).body(content);
        self.ask(&call).await.map(|_| ())
    }

    async fn get(&self, object: &str, most: usize) -> Result<Bytes, BucketError> {
        let call = Call::new(Method::GET, object);
        let get = async || {
            let mut response = self.send(&call).await?;
            self.read(&mut response, most).await
        };
        self.repeat(get).await
    }

    async fn remove(&self, object: &str) -> Result<(), BucketError> {
        let call = Call::new(Method::DELETE, object);
        gone(self.ask(&call).await.map(|_| ()))
    }

    /// The name of an object of a backup.
    pub(crate) fn object(&self, id: &str, name: &str) -> Result<String, BucketError> {
        if !is_plain(id, 1..=64) {
            return Err(BucketError::Other("this is no id of a backup".to_owned()));
        }
        Ok(format!("{}{id}/{name}", self.prefix))
    }

    /// The id of the backup that has an object.
    fn id_of<'a>(&self, object: &'a str, name: &str) -> Option<&'a str> {
        let (id, found) = object.strip_prefix(&self.prefix)?.split_once('/')?;
        (found == name && is_plain(id, 1..=64)).then_some(id)
    }
}

/// A deletion of a missing object succeeds.
fn gone(result: Result<(), BucketError>) -> Result<(), BucketError> {
    match result {
        Err(BucketError::Missing(_)) => Ok(()),
        other => other,
    }
}

/// Whether a text means the same in a path, and is no step in it.
fn is_plain(text: &str, length: std::ops::RangeInclusive<usize>) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    length.contains(&text.len()) && text.chars().all(is_plain) && !text.starts_with('.')
}
