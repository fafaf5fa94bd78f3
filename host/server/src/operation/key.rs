//! API keys.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{KeyInfo, Operator};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;

/// Creates a key for a user, and the user if no user has the address.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    pub email: String,
    #[serde(default)]
    pub name: String,
    /// All scopes if there is none.
    #[serde(default)]
    pub scopes: Vec<Scope>,
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A new key. It has no `Debug`, since it contains the secret.
#[derive(Serialize, Deserialize)]
pub struct CreatedKey {
    pub id: String,
    pub key: String,
}

impl Operation for NewKey {
    const PATH: &'static str = "/keys/new";
    type Reply = CreatedKey;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let new = wharf_control::NewKey {
            email: self.email,
            name: self.name,
            scopes: match self.scopes.is_empty() {
                true => Scopes::ALL,
                false => self.scopes.into_iter().collect(),
            },
            expires_at: self.expires_at,
        };
        let created = operator.keys.new_key(new, &Origin::operator()).await?;
        tracing::info!(id = created.id, "API key created");
        Ok(CreatedKey {
            id: created.id,
            key: created.key.expose().to_owned(),
        })
    }
}

/// Lists all keys.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListKeys {}

impl Operation for ListKeys {
    const PATH: &'static str = "/keys/list";
    type Reply = Vec<KeyInfo>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.keys.list(None)
    }
}

/// Revokes a key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeKey {
    pub id: String,
}

impl Operation for RevokeKey {
    const PATH: &'static str = "/keys/revoke";
    type Reply = ();

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let origin = Origin::operator();
        let revoked = operator.keys.revoke(&self.id, None, &origin).await;
        revoked.map_err(|error| {
            let Error::KeyNotFound = error else {
                return error;
            };
            FieldErrors::one("id", format!("no key has the id {:?}", self.id)).into()
        })
    }
}
