//! `wharf key`.

use super::operator::{Perform, operator_commands, timestamp};
use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_accounts::key::KeyInfo;
use wharf_cli::output::{line, or_none};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;
use wharf_operations::Operator;

operator_commands! {
    pub enum Key {
        New(Perform<NewKey>),
        List(Perform<ListKeys>),
        Revoke(Perform<RevokeKey>),
    }
}

/// Create a key for a user and print it; it cannot be shown again
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The user's e-mail address
    email: String,
    /// A name for the key
    #[arg(long, default_value = "")]
    name: String,
    /// A scope of the key: read, write or metrics; can be given repeatedly. Default: all
    #[arg(long = "scope", value_parser = scope)]
    scopes: Vec<Scope>,
    /// Expiry of the key, an ISO 8601 date or time
    #[arg(long = "expires", value_parser = timestamp)]
    expires_at: Option<Timestamp>,
}

/// A new key. It has no `Debug`, since it contains the secret.
#[derive(Serialize, Deserialize)]
pub struct CreatedKey {
    id: String,
    key: String,
}

impl Operation for NewKey {
    const PATH: &'static str = "/keys/new";
    type Reply = CreatedKey;

    async fn run(&self, operator: Operator<'_>) -> Result<CreatedKey, Error> {
        let new = wharf_accounts::key::KeyRequest {
            email: self.email.clone(),
            name: self.name.clone(),
            scopes: if self.scopes.is_empty() {
                Scopes::ALL
            } else {
                self.scopes.iter().copied().collect()
            },
            expires_at: self.expires_at,
        };
        let created = operator
            .accounts
            .keys
            .new_key(new, &Origin::operator())
            .await?;
        tracing::info!(id = created.id, "API key created");
        Ok(CreatedKey {
            id: created.id,
            key: created.key.expose().to_owned(),
        })
    }

    fn print(&self, created: &CreatedKey) -> Result<()> {
        line(&created.key)
    }
}

fn scope(text: &str) -> Result<Scope, &'static str> {
    Scope::parse(text).ok_or("must be read, write or metrics")
}

/// List keys: id, user, name, time of creation, time of revocation, scopes, expiry, last use
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListKeys {}

impl Operation for ListKeys {
    const PATH: &'static str = "/keys/list";
    type Reply = Vec<KeyInfo>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<KeyInfo>, Error> {
        operator.accounts.keys.list(None)
    }

    fn print(&self, keys: &Vec<KeyInfo>) -> Result<()> {
        let time = |at: Option<Timestamp>| or_none(at.map(Timestamp::to_rfc3339));
        keys.iter().try_for_each(|key| {
            let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
            line(&format!(
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                key.id,
                key.email,
                key.name,
                key.created_at.to_rfc3339(),
                time(key.revoked_at),
                scopes.join(","),
                time(key.expires_at),
                time(key.last_used_at),
            ))
        })
    }
}

/// Revoke a key with immediate effect
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeKey {
    /// The id of the key, as shown by `list`
    id: String,
}

impl Operation for RevokeKey {
    const PATH: &'static str = "/keys/revoke";
    type Reply = ();

    async fn run(&self, operator: Operator<'_>) -> Result<(), Error> {
        let origin = Origin::operator();
        let revoked = operator.accounts.keys.revoke(&self.id, None, &origin);
        revoked.await.map_err(|error| {
            let Error::KeyNotFound = error else {
                return error;
            };
            FieldErrors::one("id", format!("no key has the id {:?}", self.id)).into()
        })
    }
}
