//! `GET` and `POST /api/key/`, `DELETE /api/key/{id}/`: the caller's API keys.

use super::{EndpointReply, EndpointRequest, EndpointResult, TIME, render};
use crate::schema::CheckedBody;
use bytes::Bytes;
use serde::Serialize;
use wharf_accounts::key::KeyInfo;
use wharf_accounts::recent_sign_in::Expiry;
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;

/// The expiry of a key that does not expire.
const NEVER: &str = "never";

/// A key; `key` only in the response that creates it.
#[derive(Serialize)]
struct KeyWire {
    id: String,
    name: String,
    scopes: Vec<Scope>,
    created_at: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// The keys that are not revoked.
pub fn list(request: EndpointRequest) -> EndpointResult {
    let keys = request.api.accounts.keys.list(Some(request.caller.user))?;
    let valid = keys.into_iter().filter(|key| key.revoked_at.is_none());
    EndpointReply::list(valid.map(wire), 256)
}

fn wire(key: KeyInfo) -> KeyWire {
    KeyWire {
        id: key.id,
        name: key.name,
        scopes: key.scopes,
        created_at: key.created_at.to_rfc3339(),
        expires_at: key.expires_at.map(Timestamp::to_rfc3339),
        last_used_at: key.last_used_at.map(Timestamp::to_rfc3339),
        key: None,
    }
}

/// Creates a key with at most the scopes and the lifetime of the caller's key.
pub async fn create(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let mut checked = api.schemas.key.check(&request.body)?;
    let expiry = expiry(&mut checked);
    let scopes = checked.texts("scopes").map(|scopes| {
        let scopes = scopes.into_iter().filter_map(Scope::parse);
        scopes.collect::<Scopes>()
    });
    let name = checked.text("name").unwrap_or_default().to_owned();
    checked.errors.into_result()?;
    let made = api.accounts.make_key(caller, name, scopes, expiry);
    let (created, new) = made.await?;
    let wire = KeyWire {
        id: created.id,
        name: new.name,
        scopes: new.scopes.iter().collect(),
        created_at: created.created_at.to_rfc3339(),
        expires_at: new.expires_at.map(Timestamp::to_rfc3339),
        last_used_at: None,
        key: Some(created.key.expose().to_owned()),
    };
    Ok(EndpointReply::KeyCreated(render(&wire, 384)?))
}

/// Reads the expiry of a new key.
pub(super) fn expiry(checked: &mut CheckedBody) -> Expiry {
    let expiry = checked.parse("expires_at", |text| match text {
        NEVER => Ok(Expiry::Never),
        time => {
            let at = Timestamp::parse(time).map(Expiry::At);
            at.ok_or_else(|| format!("{TIME}, or {NEVER}"))
        }
    });
    expiry.unwrap_or(Expiry::Default)
}

/// Revokes a key of the caller, possibly the one of this request.
pub async fn revoke(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    let (keys, origin) = (&api.accounts.keys, caller.origin());
    keys.revoke(id, Some(caller.user), &origin).await?;
    Ok(EndpointReply::Gone)
}
