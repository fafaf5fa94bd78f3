//! The use cases of buckets. A bucket is reached before it becomes a row, and the backups in it become rows with it.

use crate::rows::{BACKUPS, BUCKETS, MAX_BACKUPS, MAX_BUCKETS, backups_of, bucket, buckets_of};
use crate::{Backups, secrets};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;
use wharf_accounts::recent_sign_in::require_access;
use wharf_buckets::{BackupKey, BucketClient, BucketError, BucketKeys, Manifest};
use wharf_db::{Changes, Rows, View};
use wharf_domain::backup::{BackedUp, Backup, BackupState, Bucket, BucketAddress, StoredBytes};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::{BackupId, BucketId, InstanceId, UserId};
use wharf_domain::name::Name;
use wharf_domain::secret::SecretText;
use wharf_ground::apart::apart;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

/// The time in which a new bucket must answer. Its user waits.
const REACHED: Duration = Duration::from_secs(8);
/// The time for the manifests of the backups in it.
const READ: Duration = Duration::from_secs(45);
/// The fewest characters of a passphrase.
const MIN_PASSPHRASE: usize = 12;
/// The most characters of the other fields.
const MAX_FIELD: usize = 200;

/// A bucket that a user adds.
#[derive(Debug, Clone)]
pub struct NewBucket {
    pub name: Name,
    pub address: BucketAddress,
    pub access_key_id: SecretText,
    pub secret_access_key: SecretText,
    pub passphrase: SecretText,
}

/// A bucket as its owner sees it.
#[derive(Debug, Clone)]
pub struct BucketView {
    pub bucket: Bucket,
    /// The number of its backups.
    pub n_backups: usize,
}

/// The key and the manifests of a bucket that is added.
struct Found {
    key: BackupKey,
    wrapped_key: String,
    manifests: Vec<Manifest>,
}

impl Backups {
    /// Adds a bucket of the caller, with the backups that are in it already.
    pub async fn add_bucket(&self, caller: &Caller, new: NewBucket) -> Result<BucketView, Error> {
        self.accounts.require_recent(caller)?;
        let mut errors = FieldErrors::default();
        check(&new, &mut errors);
        if let Err(message) = self.outbound.check(&new.address.endpoint).await {
            errors.add("endpoint", message);
        }
        errors.into_result()?;
        self.db
            .read(|rows| refuse_taken(rows, caller.user, &new.name))?;
        let keys = BucketKeys {
            access_key_id: new.access_key_id.clone(),
            secret_access_key: new.secret_access_key.clone(),
        };
        let found = self.find(&new, keys.clone()).await?;
        let id = BucketId(self.random.id(self.clock.system())?);
        let joined = secrets::joined(&keys, &found.key);
        let (vault, by) = (self.vault.clone(), caller.clone());
        let written = self.db.write(move |view| {
            require_access(view, &by)?;
            let owner = by.user;
            refuse_taken(view.rows, owner, &new.name)?;
            let bucket = Bucket {
                id,
                owner,
                name: new.name.clone(),
                address: new.address.clone(),
                // Encrypted within the write, so that a rotation of the key misses no new row.
                secrets: secrets::encrypt(&vault, id, &joined)?,
                wrapped_key: found.wrapped_key.clone(),
                created_at: view.system,
            };
            let mut changes = Changes::none().put(&BUCKETS, (owner, id), bucket.clone());
            let present = backups_of(view.rows, owner)?;
            let known: BTreeSet<_> = present.iter().map(|backup| backup.id).collect();
            let adopted = found.manifests.iter();
            let adopted = adopted.filter_map(|manifest| adopt(manifest, &bucket));
            let adopted = adopted.filter(|backup| !known.contains(&backup.id));
            let mut n_backups = 0;
            for backup in adopted.take(MAX_BACKUPS.saturating_sub(known.len())) {
                changes = changes.put(&BACKUPS, (owner, backup.id), backup);
                n_backups += 1;
            }
            let audited = audited(view, &by, "bucket.add", &bucket, "added");
            Ok((BucketView { bucket, n_backups }, changes.with(audited)))
        });
        written.await
    }

    /// Reaches a new bucket, and opens what it has with the passphrase.
    async fn find(&self, new: &NewBucket, keys: BucketKeys) -> Result<Found, Error> {
        let http = self.http().map_err(|error| refused(&error))?;
        let client = BucketClient::new(&new.address, keys, http);
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

    /// The caller's buckets, by name.
    pub fn buckets(&self, caller: &Caller) -> Result<Vec<BucketView>, Error> {
        self.db.read(|rows| {
            let mut buckets = buckets_of(rows, caller.user)?;
            buckets.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
            let backups = backups_of(rows, caller.user)?;
            Ok(buckets
                .into_iter()
                .map(|row| counted(row, &backups))
                .collect())
        })
    }

    /// The caller's bucket with this id or name.
    pub fn bucket(&self, caller: &Caller, named: &str) -> Result<BucketView, Error> {
        self.db.read(|rows| {
            let found = bucket(rows, caller.user, named)?;
            Ok(counted(found, &backups_of(rows, caller.user)?))
        })
    }

    /// Forgets a bucket and its backups, whose objects stay.
    pub async fn forget_bucket(&self, caller: &Caller, named: &str) -> Result<(), Error> {
        let (by, named) = (caller.clone(), named.to_owned());
        let written = self.db.write_essential(move |view| {
            require_access(view, &by)?;
            let owner = by.user;
            let bucket = bucket(view.rows, owner, &named)?;
            let mut changes = Changes::none().remove(&BUCKETS, (owner, bucket.id));
            for backup in backups_of(view.rows, owner)? {
                if backup.bucket != bucket.id {
                    continue;
                }
                if matches!(backup.state, BackupState::Running(_)) && !backup.is_deleted() {
                    return Err(Error::NotApplicable(
                        "a backup to this bucket is running; wait for its end, or delete it first",
                    ));
                }
                changes = changes.remove(&BACKUPS, (owner, backup.id));
            }
            let audited = audited(view, &by, "bucket.forget", &bucket, "forgotten");
            Ok(((), changes.with(audited)))
        });
        written.await
    }
}

fn counted(bucket: Bucket, backups: &[Backup]) -> BucketView {
    let own = |backup: &&Backup| backup.bucket == bucket.id && !backup.is_deleted();
    let n_backups = backups.iter().filter(own).count();
    BucketView { bucket, n_backups }
}

fn check(new: &NewBucket, errors: &mut FieldErrors) {
    let BucketAddress {
        region,
        bucket,
        prefix,
        ..
    } = &new.address;
    let is_name = |text: &str, others: &[u8]| {
        let is_one = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
        (1..=63).contains(&text.len()) && text.bytes().all(is_one)
    };
    for (field, text) in [("bucket", bucket), ("prefix", prefix)] {
        if !is_name(text, b"-._") || text.starts_with('.') {
            let message = "must have 1 to 63 letters, digits, hyphens, dots or underscores";
            errors.add(field, message);
        }
    }
    if !is_name(region, b"-") {
        errors.add("region", "must be the name of a region, such as us-east-1");
    }
    for (field, secret) in [
        ("access_key_id", &new.access_key_id),
        ("secret_access_key", &new.secret_access_key),
    ] {
        let text = secret.expose();
        if text.is_empty() || text.len() > MAX_FIELD || text.chars().any(char::is_control) {
            errors.add(field, "must be a key of the object store");
        }
    }
    let length = new.passphrase.expose().chars().count();
    if !(MIN_PASSPHRASE..=MAX_FIELD).contains(&length) {
        let message = format!("must have {MIN_PASSPHRASE} to {MAX_FIELD} characters");
        errors.add("passphrase", message);
    }
}

fn refuse_taken(rows: &impl Rows, owner: UserId, name: &Name) -> Result<(), Error> {
    let buckets = buckets_of(rows, owner)?;
    if buckets.iter().any(|bucket| bucket.name == *name) {
        return Err(FieldErrors::one("name", "is already taken").into());
    }
    if buckets.len() >= MAX_BUCKETS {
        let message = format!("a user has at most {MAX_BUCKETS} buckets; forget one first");
        return Err(FieldErrors::one(NON_FIELD_ERRORS, message).into());
    }
    Ok(())
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
fn open(stored: &[(String, bytes::Bytes)], passphrase: &SecretText) -> Result<Found, Error> {
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
        return Ok(Found {
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
    Ok(Found {
        wrapped_key: key.wrap(passphrase).map_err(wrong)?,
        manifests: Vec::new(),
        key,
    })
}

/// The most keys that are tried with a passphrase.
const MAX_KEYS: usize = 4;

/// The row of a backup that its bucket has.
fn adopt(manifest: &Manifest, bucket: &Bucket) -> Option<Backup> {
    Some(Backup {
        id: BackupId::parse(&manifest.id)?,
        owner: bucket.owner,
        bucket: bucket.id,
        of: BackedUp {
            instance: InstanceId::parse(&manifest.instance_id)?,
            name: Name::parse(&manifest.name).ok()?,
            flavor: manifest.flavor.clone(),
            cpu_tier: manifest.cpu_tier,
            size: manifest.size,
            engine_kind: manifest.engine_kind.clone(),
        },
        created_at: manifest.taken_at,
        state: BackupState::Done(StoredBytes {
            content: manifest.tar_bytes,
            object: manifest.stored_bytes,
            at: manifest.taken_at,
        }),
        work: None,
        reason: None,
        verified_at: None,
    })
}

fn audited(view: &View<'_>, by: &Caller, operation: &str, of: &Bucket, result: &str) -> Changes {
    let owner = Some(of.owner);
    record(
        view,
        &by.origin(),
        operation,
        owner,
        of.name.as_str(),
        result,
    )
}
