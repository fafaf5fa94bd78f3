//! `/auth/passkey/` and `/auth/invite/passkey/`: passkeys of users, and identities at providers.

use super::{Api, EndpointReply, EndpointResult, render};
use crate::schema::{CheckedBody, RequestSchema};
use serde::Serialize;
use serde_json::Value;
use wharf_accounts::AnonymousSender;
use wharf_accounts::passkey::{Passkey, RelyingParty};
use wharf_accounts::session::NewSession;
use wharf_domain::error::Error;
use wharf_domain::secret::SecretText;
use wharf_ground::caller::Caller;

/// Approximate bytes of one passkey.
const PASSKEY_BYTES: usize = 192;
/// Approximate bytes of the options for a browser.
const OPTIONS_BYTES: usize = 768;

#[derive(Serialize)]
struct PasskeyWire {
    id: String,
    name: String,
    created_at: String,
    last_used_at: Option<String>,
    usable: bool,
}

impl PasskeyWire {
    fn new(passkey: Passkey) -> Self {
        Self {
            id: passkey.id,
            name: passkey.name,
            created_at: passkey.created_at.to_rfc3339(),
            last_used_at: passkey.last_used_at.map(|at| at.to_rfc3339()),
            usable: passkey.usable,
        }
    }
}

/// Begins a passkey of an invited user.
pub fn begin_invited(
    api: &Api,
    console: &RelyingParty,
    visitor: &AnonymousSender,
    body: &[u8],
) -> EndpointResult {
    let checked = checked(&api.schemas.invite, body)?;
    let token = checked.text("token").unwrap_or_default();
    options(
        &api.accounts
            .begin_invited_passkey(console, visitor, token)?,
    )
}

/// Accepts an invitation with a passkey.
pub async fn accept(
    api: &Api,
    console: &RelyingParty,
    visitor: &AnonymousSender,
    body: &[u8],
) -> Result<NewSession, Error> {
    let checked = checked(&api.schemas.accept_passkey, body)?;
    let token = SecretText::new(checked.text("token").unwrap_or_default());
    let credential = checked.value("credential").unwrap_or(&Value::Null);
    api.accounts
        .accept_with_passkey(console, visitor, token, credential)
        .await
}

/// Begins a sign-in.
pub fn begin_sign_in(
    api: &Api,
    console: &RelyingParty,
    visitor: &AnonymousSender,
) -> EndpointResult {
    options(&api.accounts.begin_passkey_sign_in(console, visitor)?)
}

/// Signs the owner of a passkey in.
pub async fn sign_in(
    api: &Api,
    console: &RelyingParty,
    visitor: &AnonymousSender,
    body: &[u8],
) -> Result<NewSession, Error> {
    let checked = checked(&api.schemas.passkey_sign_in, body)?;
    let credential = checked.value("credential").unwrap_or(&Value::Null);
    api.accounts
        .sign_in_with_passkey(console, visitor, credential)
        .await
}

/// Begins a passkey of the caller.
pub fn begin(
    api: &Api,
    console: &RelyingParty,
    visitor: &AnonymousSender,
    caller: &Caller,
) -> EndpointResult {
    options(&api.accounts.begin_passkey(console, visitor, caller)?)
}

/// Adds a passkey of the caller.
pub async fn add(
    api: &Api,
    console: &RelyingParty,
    caller: &Caller,
    body: &[u8],
) -> EndpointResult {
    let checked = checked(&api.schemas.passkey, body)?;
    let name = checked.text("name").map(str::to_owned);
    let credential = checked.value("credential").unwrap_or(&Value::Null);
    let added = api
        .accounts
        .add_passkey(console, caller, name, credential)
        .await?;
    Ok(EndpointReply::KeyCreated(render(
        &PasskeyWire::new(added),
        PASSKEY_BYTES,
    )?))
}

/// Lists the passkeys of the caller.
pub fn list(api: &Api, caller: &Caller) -> EndpointResult {
    let passkeys = api.accounts.passkeys(caller)?;
    EndpointReply::list(passkeys.into_iter().map(PasskeyWire::new), PASSKEY_BYTES)
}

/// Renames a passkey of the caller.
pub async fn rename(api: &Api, caller: &Caller, id: &str, body: &[u8]) -> EndpointResult {
    let checked = checked(&api.schemas.passkey_name, body)?;
    let name = checked.text("name").unwrap_or_default().to_owned();
    api.accounts.rename_passkey(caller, id, name).await?;
    Ok(EndpointReply::Gone)
}

/// Removes a passkey of the caller.
pub async fn remove(api: &Api, caller: &Caller, id: &str) -> EndpointResult {
    api.accounts.remove_passkey(caller, id).await?;
    Ok(EndpointReply::Gone)
}

/// Unlinks an identity of the caller.
pub async fn unlink(api: &Api, caller: &Caller, id: &str) -> EndpointResult {
    api.accounts.unlink_identity(caller, id).await?;
    Ok(EndpointReply::Gone)
}

/// The console as browsers know it; none if they know no passkeys there.
pub fn console(api: &Api) -> Option<RelyingParty> {
    RelyingParty::of(&api.app.config().base_url())
}

fn options(options: &Value) -> EndpointResult {
    Ok(EndpointReply::Secret(render(options, OPTIONS_BYTES)?))
}

fn checked(schema: &RequestSchema, body: &[u8]) -> Result<CheckedBody, Error> {
    let mut checked = schema.check(body)?;
    std::mem::take(&mut checked.errors).into_result()?;
    Ok(checked)
}
