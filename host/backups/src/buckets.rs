//! The use cases of buckets. A bucket is reached before it becomes a row, and the backups in it become rows with it.

use crate::plan::end_plans;
use crate::rows::{BACKUPS, BUCKETS, MAX_BACKUPS, MAX_BUCKETS, backups_of, bucket, buckets_of};
use crate::{Backups, secrets};
use std::collections::BTreeSet;
use wharf_accounts::recent_sign_in::require_access;
use wharf_buckets::{BucketKeys, Manifest};
use wharf_db::{Changes, Rows, View};
use wharf_domain::backup::{
    BackedUp, Backup, BackupOf, BackupState, BackupTask, Bucket, BucketAddress, StoredBytes,
};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::{BackupId, BucketId, InstanceId, UserId, VolumeId};
use wharf_domain::instance::Instance;
use wharf_domain::name::Name;
use wharf_domain::secret::SecretText;
use wharf_domain::volume::Volume;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

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

impl Backups {
    /// Adds a bucket of the caller, with the backups that are in it already.
    pub async fn add_bucket(&self, caller: &Caller, new: NewBucket) -> Result<BucketView, Error> {
        self.accounts.require_recent(caller)?;
        let mut errors = FieldErrors::default();
        check(&new, &mut errors);
        errors.into_result()?;
        self.db
            .read(|rows| refuse_taken(rows, caller.user, &new.name))?;
        let keys = BucketKeys {
            access_key_id: new.access_key_id.clone(),
            secret_access_key: new.secret_access_key.clone(),
        };
        let found = self.reach.find(&new, keys.clone()).await?;
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
            let mut changes = end_plans::<Instance>(view.rows, bucket.id)?
                .with(end_plans::<Volume>(view.rows, bucket.id)?)
                .remove(&BUCKETS, (owner, bucket.id));
            for backup in backups_of(view.rows, owner)? {
                if backup.bucket != bucket.id {
                    continue;
                }
                if backup
                    .work
                    .is_some_and(|work| work.what == BackupTask::Remove && work.failed == 0)
                {
                    return Err(Error::NotApplicable(
                        "a deleted backup is still being removed from this bucket; try again in a moment",
                    ));
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

/// The row of a backup that its bucket has.
fn adopt(manifest: &Manifest, bucket: &Bucket) -> Option<Backup> {
    Some(Backup {
        id: BackupId::parse(&manifest.id)?,
        owner: bucket.owner,
        bucket: bucket.id,
        of: BackedUp {
            what: match &manifest.volume_id {
                Some(volume) => BackupOf::Volume {
                    id: VolumeId::parse(volume)?,
                    size_gib: manifest.size.disk_size_gib,
                },
                None => BackupOf::Instance {
                    id: InstanceId::parse(&manifest.instance_id)?,
                    flavor: manifest.flavor.clone(),
                    size: manifest.size,
                },
            },
            name: Name::parse(&manifest.name).ok()?,
            cpu_tier: manifest.cpu_tier,
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
        planned: None,
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
