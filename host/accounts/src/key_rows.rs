//! The rows of API keys. Revoked and expired ones are removed after a while: the audit log has them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use wharf_db::{AUDIT, Draft, Rows, Table, tables};
use wharf_domain::audit::{Actor, AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;

tables! {
    /// Public key id → key.
    pub const KEYS: Table<String, (), KeyRow> = Table::budgeted(
        b'k',
        0,
        |_, (), key| key.revoked_at.is_none().then_some(key.user),
        "100 of a user that are not revoked, and the budget",
        "30 days after the revocation or the expiry"
    )
    .wakes("keys", |_, _, (), key| Ok(Some(key.user)))
    .indexed(|id, (), key, entries| match key.revoked_at {
        None => entries.put(&USER_KEYS, (key.user, id.clone()), &()),
        Some(_) => Ok(()),
    });
    /// Scopes and expiry of a key.
    pub const KEY_TERMS: Table<String, (), KeyTerms> = Table::part_of(&KEYS, b'k', 1);
    /// The last use of a key, to the minute.
    pub const KEY_USES: Table<String, (), Timestamp> = Table::part_of(&KEYS, b'k', 2);
    /// Keys of a user that are not revoked.
    pub const USER_KEYS: Table<UserId, String, ()> = Table::index_of(&KEYS, b'K', 0);
}

/// An API key. The secret itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// Public part of the key.
    pub id: String,
    /// Its user.
    pub user: UserId,
    /// The name that its owner gave it.
    pub name: String,
    /// SHA-256 of the whole key.
    pub sha256: [u8; 32],
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// The terms of an API key. A key without this row has all scopes and does not expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTerms {
    /// Its permissions.
    pub scopes: Scopes,
    /// The time from which on it is not valid.
    pub expires_at: Option<Timestamp>,
}

/// The ids of a user's keys that are not revoked, expired ones included.
pub(super) fn keys_of(rows: &impl Rows, user: UserId) -> Result<Vec<String>, Error> {
    rows.keys_under(&USER_KEYS, &user)?.collect()
}

/// All keys, revoked ones included.
pub(super) fn all_keys(rows: &impl Rows) -> Result<Vec<KeyRow>, Error> {
    rows.all(&KEYS)?
        .map(|row| row.map(|(_, (), key)| key))
        .collect()
}

/// Takes the scope `metrics` from keys that users have made, with an audit record of each. The audit
/// log tells the operator's keys; a key whose record is no longer kept counts as a user's. Keys
/// without terms are older than the keys that users make.
pub fn take_metrics_from_users(rows: &mut Draft<'_>) -> Result<(), Error> {
    let mut of_operator = BTreeSet::new();
    for row in rows.all(&AUDIT)? {
        match row.and_then(|(_, _, row)| row.read()) {
            Ok(record) if made_by_operator(&record) => of_operator.extend(record.subject),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(error = %error.chain(), "an audit record cannot be read");
            }
        }
    }
    let terms = rows.all(&KEY_TERMS)?.filter_map(Result::ok);
    let taken = terms
        .filter(|(id, (), terms)| terms.scopes.has(Scope::Metrics) && !of_operator.contains(id));
    for (id, (), terms) in taken.collect::<Vec<_>>() {
        match rows.get(&KEYS, &*id) {
            Ok(Some(key)) if key.revoked_at.is_none() => take_metrics(rows, &key, terms)?,
            _ => {}
        }
    }
    Ok(())
}

fn take_metrics(rows: &mut Draft<'_>, key: &KeyRow, terms: KeyTerms) -> Result<(), Error> {
    let terms = KeyTerms {
        scopes: terms.scopes.intersection(Scopes::OF_USERS),
        ..terms
    };
    rows.put(&KEY_TERMS, &*key.id, &terms)?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.map_err(Error::internal)?.as_millis();
    rows.append_audit(&AuditRecord {
        at: Timestamp(i64::try_from(millis).map_err(Error::internal)?),
        origin: Origin::operator(),
        operation: "key.scopes".to_owned(),
        owner: Some(key.user),
        instance: None,
        subject: Some(key.id.clone()),
        result: "lost metrics, which the operator gives".to_owned(),
    })?;
    tracing::warn!(
        id = key.id,
        "a key that its user made lost the scope `metrics`; `wharf key new` gives it"
    );
    Ok(())
}

fn made_by_operator(record: &AuditRecord) -> bool {
    record.operation == "key.new" && record.origin.actor == Actor::Operator
}
