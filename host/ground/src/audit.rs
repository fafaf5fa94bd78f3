//! The audit log, for owners and for the operator.

use crate::users::USERS;
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Db, Read as _, Rows as _, View};
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// A record as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Number of the record, ascending with time.
    pub id: u64,
    /// Time in ISO 8601.
    pub time: String,
    /// `key:` or `session:` with its public id, or `operator`.
    pub actor: String,
    /// Address of the client.
    pub peer: Option<String>,
    pub request_id: Option<String>,
    pub operation: String,
    /// UUID of the instance.
    pub instance: Option<String>,
    /// Another thing that changed, such as the id of a key.
    pub subject: Option<String>,
    pub result: String,
}

impl AuditEntry {
    fn new((id, record): (u64, AuditRecord)) -> Self {
        Self {
            id,
            time: record.at.to_rfc3339(),
            actor: record.origin.actor.to_string(),
            peer: record.origin.peer.map(|peer| peer.to_string()),
            request_id: record.origin.request_id,
            operation: record.operation,
            instance: record.instance.map(|id| id.to_string()),
            subject: record.subject,
            result: record.result,
        }
    }
}

/// The order of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditOrder {
    #[default]
    Oldest,
    Newest,
}

/// The change that appends a record about something else than an instance.
pub fn record(
    view: &View<'_>,
    origin: &Origin,
    operation: &str,
    owner: Option<UserId>,
    subject: &str,
    result: &str,
) -> Changes {
    Changes::none().audit(AuditRecord {
        at: view.system,
        origin: origin.clone(),
        operation: operation.to_owned(),
        owner,
        instance: None,
        subject: Some(subject.to_owned()),
        result: result.to_owned(),
    })
}

/// Returns at most `limit` records after the number `after`, of all users, with the owner's e-mail
/// address.
pub fn page(db: &Db, after: u64, limit: usize) -> Result<Vec<(Option<String>, AuditEntry)>, Error> {
    db.read(|rows| {
        let records = rows.audit(after, limit)?;
        let with_owner = records.into_iter().map(|record| {
            let owner = record.1.owner.map(|owner| rows.get(&USERS, owner));
            Ok((owner.transpose()?.flatten(), AuditEntry::new(record)))
        });
        with_owner.collect()
    })
}

/// Returns at most `limit` records about an owner's instances and keys, in an order, that follow the
/// record with the number `after`.
pub fn page_of(
    db: &Db,
    owner: UserId,
    order: AuditOrder,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEntry>, Error> {
    let records = db.read(|rows| match order {
        AuditOrder::Oldest => rows.audit_of(owner, after.unwrap_or_default(), limit),
        AuditOrder::Newest => rows.audit_of_before(owner, after.unwrap_or(u64::MAX), limit),
    })?;
    Ok(records.into_iter().map(AuditEntry::new).collect())
}
