//! The secrets of the database: the rotation of their key, and the check that it decrypts them. Every step of
//! a rotation leaves all secrets readable, and a rotation that was interrupted is continued by the next one.

use serde::{Deserialize, Serialize};
use wharf_db::{
    Changes, Db, INSTANCES, PROVISIONING_SPECS, ProvisioningSpec, Read as _, Rows as _, View,
};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_ground::vault::Vault;
use wharf_instances::idempotency::{IDEMPOTENT, IdempotencyDigest};

/// Instances in one write, so that other writes wait for a few milliseconds only.
const BATCH: usize = 128;

/// The result of a rotation.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Fingerprint of the new key.
    pub fingerprint: String,
    /// Number of instances whose secrets were encrypted again.
    pub instances: usize,
    /// Instances with secrets that no key decrypts. They are left as they were.
    pub unreadable: Vec<InstanceId>,
}

/// Makes a new key, encrypts all secrets again, and removes the earlier key from the key file.
pub async fn rotate(vault: &Vault, db: &Db) -> Result<Rotation, Error> {
    let _alone = vault.rotating().lock().await;
    if vault.has_earlier_keys() {
        tracing::info!("continuing the rotation that was interrupted");
    } else {
        vault.add_key()?;
    }
    // When this write is done, so is every write that encrypted with the earlier key.
    vault.note(db, Some("secrets.rotate")).await?;
    let mut ids = Vec::new();
    db.read(|rows| rows.each_instance(|instance| ids.push(instance.id)))?;
    let mut rotation = Rotation {
        fingerprint: vault.fingerprint().to_string(),
        ..Rotation::default()
    };
    for batch in ids.chunks(BATCH) {
        let (vault, batch) = (vault.clone(), batch.to_vec());
        let written = db.write_essential(move |view| renew_all(&vault, view, &batch));
        let (renewed, unreadable) = written.await?;
        rotation.instances += renewed;
        rotation.unreadable.extend(unreadable);
    }
    wharf_hooks::renew_secrets(vault, db).await?;
    wharf_backups::renew_secrets(vault, db).await?;
    renew_replays(vault, db).await?;
    vault.drop_earlier_keys()?;
    let key: &str = &rotation.fingerprint;
    tracing::info!(
        key,
        instances = rotation.instances,
        "the key of the secrets was rotated"
    );
    Ok(rotation)
}

/// Encrypts the passwords again that replays of create requests show. They outlive their instances.
async fn renew_replays(vault: &Vault, db: &Db) -> Result<(), Error> {
    let mut from = (UserId(0), IdempotencyDigest::default());
    loop {
        let vault = vault.clone();
        let written = db.write_essential(move |view| {
            let mut changes = Changes::none();
            let keys = view.rows.keys_under_from(&IDEMPOTENT, &(), from)?;
            let keys: Vec<_> = keys.take(BATCH + 1).collect::<Result<_, _>>()?;
            let next = keys.get(BATCH).copied();
            for key in keys.into_iter().take(BATCH).map(|key| ((), key)) {
                let Some(mut create) = view.rows.get(&IDEMPOTENT, key)? else {
                    continue;
                };
                let instance = &mut create.created;
                // A password that no key decrypts is left as it is, as those of instances are.
                if let Ok(Some(password)) = vault.renew(instance.id, &instance.password) {
                    instance.password = password;
                    changes = changes.rewrite(&IDEMPOTENT, key, create);
                }
            }
            Ok((next, changes))
        });
        match written.await? {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

fn renew_all(
    vault: &Vault,
    view: &View<'_>,
    ids: &[InstanceId],
) -> Result<((usize, Vec<InstanceId>), Changes), Error> {
    let (mut renewed, mut unreadable) = (0, Vec::new());
    let mut changes = Changes::none();
    for id in ids {
        let Some(instance) = view.rows.instance(*id)? else {
            continue;
        };
        let spec = view.rows.provisioning_spec(*id)?;
        let both = vault.renew(*id, &instance.password).and_then(|password| {
            let secrets = spec.as_ref().map(|spec| vault.renew(*id, &spec.secrets));
            Ok((password, secrets.transpose()?.flatten()))
        });
        match both {
            Ok((None, None)) => {}
            Ok((password, secrets)) => {
                renewed += 1;
                if let Some(password) = password {
                    // Its owner sees the password as before, so the row is no new version.
                    let row = Instance {
                        password,
                        ..instance
                    };
                    changes = changes.rewrite(&INSTANCES, *id, row);
                }
                if let (Some(secrets), Some(spec)) = (secrets, spec) {
                    let spec = ProvisioningSpec { secrets, ..spec };
                    changes = changes.put(&PROVISIONING_SPECS, *id, spec);
                }
            }
            Err(_) => unreadable.push(*id),
        }
    }
    Ok(((renewed, unreadable), changes))
}

/// One line for each instance, webhook and bucket with a secret that the keys in a file do not decrypt.
pub fn unreadable(vault: &Vault, db: &Db) -> Result<Vec<String>, Error> {
    let path = vault.path().display();
    let webhooks = wharf_hooks::unreadable(vault, db)?.into_iter();
    let line = |id| format!("webhook {id}: {path} does not decrypt its secret");
    let mut wrong: Vec<_> = webhooks.map(line).collect();
    let buckets = wharf_backups::unreadable(vault, db)?.into_iter();
    wrong.extend(buckets.map(|id| format!("bucket {id}: {path} does not decrypt its secrets")));
    db.read(|rows| {
        let mut passwords = Vec::new();
        rows.each_instance(|instance| passwords.push((instance.id, instance.password)))?;
        for (id, password) in passwords {
            let Some(spec) = rows.provisioning_spec(id)? else {
                continue;
            };
            if vault.decrypt_all(id, &spec.secrets, &password).is_err() {
                wrong.push(format!("{id}: {path} does not decrypt its secrets"));
            }
        }
        Ok(())
    })?;
    Ok(wrong)
}
