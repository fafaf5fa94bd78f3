//! The scopes of keys from a version in which users gave themselves those of the operator.

use super::codec::internal;
use super::read::Read as _;
use super::rows::{KeyRow, KeyTerms};
use super::table::{Draft, Rows as _};
use super::tables as t;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use wharf_domain::audit::{Actor, AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;

impl Draft<'_> {
    /// Takes the scope `metrics` from keys that users have made, with an audit record of each. The audit
    /// log tells the operator's keys; a key whose record is no longer kept counts as a user's. Keys
    /// without terms are older than the keys that users make.
    pub(super) fn take_metrics_from_users(&mut self) -> Result<(), Error> {
        let mut of_operator = BTreeSet::new();
        for row in self.all(&t::AUDIT)? {
            match row.and_then(|(_, _, row)| row.read()) {
                Ok(record) if made_by_operator(&record) => of_operator.extend(record.subject),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(error = %error.chain(), "an audit record cannot be read");
                }
            }
        }
        let mut taken = Vec::new();
        for row in self.all(&t::KEY_TERMS)? {
            let Ok((id, (), terms)) = row else {
                continue;
            };
            if terms.scopes.has(Scope::Metrics) && !of_operator.contains(&id) {
                taken.push((id, terms));
            }
        }
        for (id, terms) in taken {
            match self.key(&id) {
                Ok(Some(key)) if key.revoked_at.is_none() => self.take_metrics(&key, terms)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn take_metrics(&mut self, key: &KeyRow, terms: KeyTerms) -> Result<(), Error> {
        let terms = KeyTerms {
            scopes: terms.scopes.intersection(Scopes::OF_USERS),
            ..terms
        };
        self.put(&t::KEY_TERMS, &*key.id, (), &terms)?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since_epoch.map_err(internal)?.as_millis();
        self.append_audit(&AuditRecord {
            at: Timestamp(i64::try_from(millis).map_err(internal)?),
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
}

fn made_by_operator(record: &AuditRecord) -> bool {
    record.operation == "key.new" && record.origin.actor == Actor::Operator
}
