//! API keys.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{KeyInfo, Operator};
use wharf_domain::error::{Error, FieldErrors};

/// Creates a key for a user, and the user if no user has the address.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    pub email: String,
    #[serde(default)]
    pub name: String,
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
        let created = operator.keys.new_key(&self.email, &self.name).await?;
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
        operator.keys.list()
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
        operator.keys.revoke(&self.id).await.map_err(|error| {
            let Error::NotFound = error else {
                return error;
            };
            FieldErrors::one("id", format!("no key has the id {:?}", self.id)).into()
        })
    }
}
