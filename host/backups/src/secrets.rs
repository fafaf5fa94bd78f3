//! The secrets of buckets: the access keys, and the key of backups.

use crate::rows::BUCKETS;
use wharf_buckets::{BackupKey, BucketError, BucketKeys};
use wharf_db::{Changes, Db, Rows as _};
use wharf_domain::backup::Bucket;
use wharf_domain::error::Error;
use wharf_domain::ids::BucketId;
use wharf_domain::secret::{Encrypted, SecretText};
use wharf_ground::vault::Vault;

/// No part has a line feed.
const SEPARATOR: &str = "\n";

/// The secrets of a bucket in one text.
pub fn joined(keys: &BucketKeys, key: &BackupKey) -> SecretText {
    let text = key.text();
    let parts = [&keys.access_key_id, &keys.secret_access_key, &text];
    SecretText::new(parts.map(SecretText::expose).join(SEPARATOR))
}

/// Encrypts the secrets of a bucket. A rotation reaches them only if the write that stores them calls this.
pub fn encrypt(vault: &Vault, id: BucketId, joined: &SecretText) -> Result<Encrypted, Error> {
    vault.encrypt_text(id.into(), joined)
}

/// Decrypts the secrets of a bucket.
pub fn open(vault: &Vault, bucket: &Bucket) -> Result<(BucketKeys, BackupKey), BucketError> {
    let unreadable = || BucketError::Other("its keys cannot be decrypted".to_owned());
    let joined = vault.decrypt_text(bucket.id.into(), &bucket.secrets);
    let joined = joined.map_err(|_| unreadable())?;
    let mut parts = joined.expose().split(SEPARATOR).map(SecretText::new);
    let mut part = || parts.next().ok_or_else(unreadable);
    let keys = BucketKeys {
        access_key_id: part()?,
        secret_access_key: part()?,
    };
    Ok((keys, BackupKey::from_text(&part()?)?))
}

fn all(db: &Db) -> Result<Vec<Bucket>, Error> {
    db.read(|rows| {
        let buckets = rows.all(&BUCKETS)?;
        buckets
            .map(|row| row.map(|(_, _, bucket)| bucket))
            .collect()
    })
}

/// The ids of buckets with secrets that cannot be decrypted.
pub fn unreadable(vault: &Vault, db: &Db) -> Result<Vec<BucketId>, Error> {
    let buckets = all(db)?.into_iter();
    let unreadable = buckets.filter(|bucket| open(vault, bucket).is_err());
    Ok(unreadable.map(|bucket| bucket.id).collect())
}

/// Encrypts the secrets of buckets again that an earlier key encrypted. Those that no key decrypts stay.
pub async fn renew_secrets(vault: &Vault, db: &Db) -> Result<(), Error> {
    for bucket in all(db)? {
        let (vault, key) = (vault.clone(), (bucket.owner, bucket.id));
        let renewed = db.write_essential(move |view| {
            let Some(mut bucket) = view.rows.get(&BUCKETS, key)? else {
                return Ok(((), Changes::none()));
            };
            match vault.renew(bucket.id.into(), &bucket.secrets) {
                Ok(Some(secrets)) => {
                    bucket.secrets = secrets;
                    Ok(((), Changes::none().put(&BUCKETS, key, bucket)))
                }
                Ok(None) => Ok(((), Changes::none())),
                Err(error) => {
                    let error = error.chain();
                    tracing::error!(bucket = %bucket.id, %error, "a bucket keeps secrets that no key decrypts");
                    Ok(((), Changes::none()))
                }
            }
        });
        renewed.await?;
    }
    Ok(())
}
