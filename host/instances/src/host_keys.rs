//! The SSH host keys to which Wharf sends the passwords of instances.

use super::App;
use wharf_db::{Changes, Db, INSTANCES, Read as _, Rows, Table, tables};
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::host_key::HostKey;
use wharf_domain::ids::InstanceId;
use wharf_ground::caller::Caller;
use wharf_terminal::IsKnown;

tables! {
    /// SSH host keys of instances, as the host was shown them last.
    pub const HOST_KEYS: Table<(), InstanceId, Vec<HostKey>> = Table::part_of(&INSTANCES, b'x', 2)
        .wakes("host-keys", |rows, (), id, _| Ok(rows.instance(*id)?.map(|row| row.owner)));
}

/// The SSH host keys of an instance, as the host was shown them last.
pub(super) fn known_keys(rows: &impl Rows, id: InstanceId) -> Result<Vec<HostKey>, Error> {
    Ok(rows.get(&HOST_KEYS, id)?.unwrap_or_default())
}

/// The name of the operation in the audit log.
const OPERATION: &str = "host-key.note";

impl App {
    /// The check of the host keys that an instance shows to a terminal of the caller.
    pub(super) fn host_key_check(&self, caller: &Caller, id: InstanceId) -> IsKnown {
        let (db, origin) = (self.db.clone(), caller.origin());
        Box::new(move |shown| {
            let (db, origin) = (db.clone(), origin.clone());
            Box::pin(async move {
                // The connection has a task of its own, outside the span of the request.
                let is_known = is_known(&db, id, origin, shown.clone()).await;
                let HostKey {
                    algorithm,
                    fingerprint,
                    ..
                } = shown;
                match is_known {
                    Ok(true) => return true,
                    Ok(false) => tracing::warn!(
                        instance = %id,
                        algorithm,
                        fingerprint,
                        "the instance shows an SSH host key that is not known, so no password was sent"
                    ),
                    Err(error) => tracing::error!(
                        instance = %id,
                        error = %error.chain(),
                        "cannot check the SSH host key of the instance"
                    ),
                }
                false
            })
        })
    }
}

/// A check that takes known host keys only.
pub(super) fn known_only(known: Vec<HostKey>) -> IsKnown {
    Box::new(move |shown| {
        let is_known = known.contains(&shown);
        Box::pin(async move { is_known })
    })
}

/// Returns whether the key is one of the instance. If none is known, this key is noted: the instance
/// was reached before Wharf noted keys, or did not show one in time.
async fn is_known(db: &Db, id: InstanceId, origin: Origin, shown: HostKey) -> Result<bool, Error> {
    let known = db.read(|rows| known_keys(rows, id))?;
    if !known.is_empty() {
        return Ok(known.contains(&shown));
    }
    db.write_essential(move |view| {
        let known = known_keys(view.rows, id)?;
        let instance = match view.rows.instance(id)? {
            Some(instance) if known.is_empty() => instance,
            _ => return Ok((known.contains(&shown), Changes::none())),
        };
        let record = AuditRecord {
            at: view.system,
            origin: origin.clone(),
            operation: OPERATION.to_owned(),
            owner: Some(instance.owner),
            instance: Some(id),
            subject: Some(shown.fingerprint.clone()),
            result: "noted".to_owned(),
        };
        let changes = Changes::none()
            .put(&HOST_KEYS, id, vec![shown.clone()])
            .audit(record);
        Ok((true, changes))
    })
    .await
}
