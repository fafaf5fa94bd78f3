//! The way to buckets: over the network, or within a simulation.

use crate::NewBucket;
use async_trait::async_trait;
use rustls::ClientConfig;
use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use wharf_buckets::{
    BackupKey, BucketClient, BucketError, BucketKeys, ContentReader, ContentReceiver, Manifest,
    SentContent,
};
use wharf_domain::backup::BucketAddress;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::secret::SecretText;
use wharf_ground::apart::apart;
use wharf_outbound::{CheckedClient, Outbound};

/// The time in which a new bucket must answer. Its user waits.
const REACHED: Duration = Duration::from_secs(8);
/// The time for the manifests of the backups in it.
const READ: Duration = Duration::from_secs(45);
/// The most keys that are tried with a passphrase.
const MAX_KEYS: usize = 4;

/// The way to the buckets of users.
#[async_trait]
pub trait Reach: Send + Sync {
    /// Reaches a new bucket, and opens what it has with the passphrase.
    async fn find(&self, new: &NewBucket, keys: BucketKeys) -> Result<FoundBucket, Error>;

    /// A bucket. Nothing is sent yet.
    fn bucket(
        &self,
        address: &BucketAddress,
        keys: BucketKeys,
    ) -> Result<Arc<dyn Objects>, BucketError>;
}

/// The key and the manifests of a bucket that is added.
pub struct FoundBucket {
    pub key: BackupKey,
    pub wrapped_key: String,
    pub manifests: Vec<Manifest>,
}

/// The objects of a bucket, as [`BucketClient`] has them.
#[async_trait]
pub trait Objects: Send + Sync {
    async fn upload(
        &self,
        id: &str,
        key: &BackupKey,
        content: ContentReceiver,
    ) -> Result<SentContent, BucketError>;
    async fn put_manifest(
        &self,
        id: &str,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<(), BucketError>;
    async fn manifest(&self, id: &str, key: &BackupKey) -> Result<Manifest, BucketError>;
    async fn open(
        &self,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<ContentReader, BucketError>;
    async fn verify(&self, manifest: &Manifest, key: &BackupKey) -> Result<(), BucketError>;
    async fn delete(&self, id: &str) -> Result<(), BucketError>;
    async fn abort_uploads(&self, keep: &[String]) -> Result<(), BucketError>;
}

#[async_trait]
impl Objects for BucketClient {
    async fn upload(
        &self,
        id: &str,
        key: &BackupKey,
        content: ContentReceiver,
    ) -> Result<SentContent, BucketError> {
        Self::upload(self, id, key, content).await
    }

    async fn put_manifest(
        &self,
        id: &str,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<(), BucketError> {
        Self::put_manifest(self, id, manifest, key).await
    }

    async fn manifest(&self, id: &str, key: &BackupKey) -> Result<Manifest, BucketError> {
        Self::manifest(self, id, key).await
    }

    async fn open(
        &self,
        manifest: &Manifest,
        key: &BackupKey,
    ) -> Result<ContentReader, BucketError> {
        Self::open(self, manifest, key).await
    }

    async fn verify(&self, manifest: &Manifest, key: &BackupKey) -> Result<(), BucketError> {
        Self::verify(self, manifest, key).await
    }

    async fn delete(&self, id: &str) -> Result<(), BucketError> {
        Self::delete(self, id).await
    }

    async fn abort_uploads(&self, keep: &[String]) -> Result<(), BucketError> {
        Self::abort_uploads(self, keep).await
    }
}

/// The way over the network.
pub struct NetworkReach {
    outbound: Outbound,
    /// None without trusted certificates in the operating system.
    http: Option<CheckedClient>,
}

impl NetworkReach {
    /// `tls` is that of the requests, or the reason for which no bucket can be trusted.
    pub fn new(outbound: Outbound, tls: Result<ClientConfig, rustls::Error>) -> Self {
        let tls = tls.map_err(Box::<dyn StdError>::from);
        let http = tls.and_then(|tls| CheckedClient::new(outbound.clone(), tls));
        let http = http.inspect_err(|error| tracing::warn!(%error, "buckets cannot be reached"));
        let http = http.ok();
        Self { outbound, http }
    }

    fn client(
        &self,
        address: &BucketAddress,
        keys: BucketKeys,
    ) -> Result<BucketClient, BucketError> {
        let missing = || BucketError::Other("the service has no trusted certificates".to_owned());
        let http = self.http.clone().ok_or_else(missing)?;
        BucketClient::new(address, keys, http)
    }
}

#[async_trait]
impl Reach for NetworkReach {
    async fn find(&self, new: &NewBucket, keys: BucketKeys) -> Result<FoundBucket, Error> {
        let checked = self.outbound.check(&new.address.endpoint).await;
        checked.map_err(|message| FieldErrors::one("endpoint", message))?;
        let client = self.client(&new.address, keys);
        let client = client.map_err(|error| refused(&error))?.without_retries();
        within(REACHED, client.probe()).await?;
        let stored = within(READ, client.manifests()).await?;
        let passphrase = new.passphrase.clone();
        // The passphrase takes a second of a core, or of several for forged ones.
        let found = apart(move || open(&stored, &passphrase));
        found
            .await
            .map_err(|error| Error::caused("a passphrase", error))?
    }

    fn bucket(
        &self,
        address: &BucketAddress,
        keys: BucketKeys,
    ) -> Result<Arc<dyn Objects>, BucketError> {
        Ok(Arc::new(self.client(address, keys)?))
    }
}

/// Does work for a user who waits.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, BucketError>>,
) -> Result<T, Error> {
    let late = || BucketError::Unreachable("it does not answer in time".to_owned());
    let done = timeout(limit, work).await.unwrap_or_else(|_| Err(late()));
    done.map_err(|error| refused(&error))
}

/// The error of a new bucket, at the field that is wrong.
fn refused(error: &BucketError) -> Error {
    let field = match error {
        BucketError::Keys | BucketError::Denied(_) => "access_key_id",
        BucketError::NoBucket => "bucket",
        _ => "endpoint",
    };
    FieldErrors::one(field, error.to_string()).into()
}

/// Opens the manifests of a bucket. Without any, its key is a new one.
fn open(stored: &[(String, bytes::Bytes)], passphrase: &SecretText) -> Result<FoundBucket, Error> {
    let wrong = |error: BucketError| Error::from(FieldErrors::one("passphrase", error.to_string()));
    let parsed = stored.iter();
    let parsed = parsed.filter_map(|(id, json)| Some((id, Manifest::parse(json).ok()?)));
    let manifests: Vec<_> = parsed.collect();
    let mut tried = BTreeSet::new();
    for (_, manifest) in &manifests {
        // An attacker could fill a bucket with keys that take long.
        if tried.len() >= MAX_KEYS || !tried.insert(&manifest.key) {
            continue;
        }
        let Ok(Some(key)) = BackupKey::unwrap(&manifest.key, passphrase) else {
            continue;
        };
        let wrapped_key = manifest.key.clone();
        let own = manifests.into_iter();
        let own = own.filter(|(id, manifest)| manifest.check(id, &key).is_ok());
        return Ok(FoundBucket {
            manifests: own.map(|(_, manifest)| manifest).collect(),
            key,
            wrapped_key,
        });
    }
    if !tried.is_empty() {
        let message = "opens none of the backups that are under this prefix; give the one that they were made with, \
                       or another prefix";
        return Err(FieldErrors::one("passphrase", message).into());
    }
    let key = BackupKey::generate();
    Ok(FoundBucket {
        wrapped_key: key.wrap(passphrase).map_err(wrong)?,
        manifests: Vec::new(),
        key,
    })
}
