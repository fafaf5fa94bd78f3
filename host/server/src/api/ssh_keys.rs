//! `GET` and `POST /api/ssh-key/`, `DELETE /api/ssh-key/{id}/`: the caller's saved SSH public keys.

use super::public_key::{self, fingerprint};
use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use bytes::Bytes;
use serde::Serialize;
use wharf_accounts::ssh_key::SshKey;

/// Approximate bytes of one key.
const KEY_BYTES: usize = 384;

#[derive(Serialize)]
struct SshKeyWire {
    id: String,
    name: String,
    fingerprint: String,
    public_key: String,
    created_at: String,
}

impl SshKeyWire {
    fn new(key: SshKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            fingerprint: fingerprint(&key.public_key).unwrap_or_default(),
            public_key: key.public_key,
            created_at: key.created_at.to_rfc3339(),
        }
    }
}

/// The saved keys.
pub fn list(request: EndpointRequest) -> EndpointResult {
    let keys = request.api.accounts.ssh_keys(&request.caller)?.into_iter();
    EndpointReply::list(keys.map(SshKeyWire::new), KEY_BYTES)
}

/// Saves a key.
pub async fn create(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let mut checked = api.schemas.ssh_key.check(&request.body)?;
    let public_key = checked.parse("public_key", public_key::parse);
    let name = checked.text("name").unwrap_or_default().to_owned();
    checked.errors.into_result()?;
    let public_key = public_key.unwrap_or_default();
    let saved = api.accounts.save_ssh_key(caller, name, public_key).await?;
    Ok(EndpointReply::KeyCreated(render(
        &SshKeyWire::new(saved),
        KEY_BYTES,
    )?))
}

/// Deletes a saved key.
pub async fn delete(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    api.accounts.delete_ssh_key(caller, id).await?;
    Ok(EndpointReply::Gone)
}
