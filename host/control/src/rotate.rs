//! Rotation of the key of the secrets. Every step leaves all secrets readable, and a rotation that was
//! interrupted is continued by the next one.

use super::idempotency::{IDEMPOTENT, IdempotencyDigest};
use super::vault::Vault;
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Db, PROVISIONING_SPECS, ProvisioningSpec, Read as _, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};

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

impl Vault {
    /// Makes a new key, encrypts all secrets again, and removes the earlier key from the key file.
    pub async fn rotate(&self, db: &Db) -> Result<Rotation, Error> {
        let _alone = self.rotating().lock().await;
        if self.has_earlier_keys() {
            tracing::info!("continuing the rotation that was interrupted");
        } else {
            self.add_key()?;
        }
        // When this write is done, so is every write that encrypted with the earlier key.
        self.note(db, Some("secrets.rotate")).await?;
        let mut ids = Vec::new();
        db.read(|rows| rows.each_instance(|instance| ids.push(instance.id)))?;
        let mut rotation = Rotation {
            fingerprint: self.fingerprint().to_string(),
            ..Rotation::default()
        };
        for batch in ids.chunks(BATCH) {
            let (vault, batch) = (self.clone(), batch.to_vec());
            let written = db.write_essential(move |view| vault.renew_all(view, &batch));
            let (renewed, unreadable) = written.await?;
            rotation.instances += renewed;
            rotation.unreadable.extend(unreadable);
        }
        self.renew_webhooks(db).await?;
        self.renew_replays(db).await?;
        self.drop_earlier_keys()?;
        let key: &str = &rotation.fingerprint;
        tracing::info!(
            key,
            instances = rotation.instances,
            "the key of the secrets was rotated"
        );
        Ok(rotation)
    }

    /// Encrypts the passwords again that replays of create requests show. They outlive their instances.
    async fn renew_replays(&self, db: &Db) -> Result<(), Error> {
        let mut from = (UserId(0), IdempotencyDigest::default());
        loop {
            let vault = self.clone();
            let written = db.write_essential(move |view| {
                let mut changes = Changes::none();
                let keys = view.rows.keys_under_from(&IDEMPOTENT, &(), from)?;
                let keys: Vec<_> = keys.take(BATCH + 1).collect::<Result<_, _>>()?;
                let next = keys.get(BATCH).copied();
                for key in keys.into_iter().take(BATCH).map(|key| ((), key)) {
                    let Some(mut create) = view.rows.get(&IDEMPOTENT, key)? else {
                        continue;
                    };
                    let instance = &mut create.instance;
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
        &self,
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
            let both = self.renew(*id, &instance.password).and_then(|password| {
                let secrets = spec.as_ref().map(|spec| self.renew(*id, &spec.secrets));
                Ok((password, secrets.transpose()?.flatten()))
            });
            match both {
                Ok((None, None)) => {}
                Ok((password, secrets)) => {
                    renewed += 1;
                    if let Some(password) = password {
                        changes = changes.put_password(*id, password);
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
}
