//! `/auth/device/`: keys for programs, which a user approves in the console.

use super::keys::expiry;
use super::{Api, EndpointReply, EndpointResult, render};
use serde::Serialize;
use serde_json::json;
use wharf_accounts::AnonymousSender;
use wharf_accounts::device::{DeviceAnswer, INTERVAL, LIFETIME};
use wharf_domain::scope::{Scope, Scopes};
use wharf_ground::caller::Caller;

/// The name of a key whose program gave none.
const NAME: &str = "wharf login";

#[derive(Serialize)]
struct DeviceWire<'a> {
    device_code: &'a str,
    user_code: &'a str,
    verification_url: &'a str,
    interval: u64,
    expires_in: u64,
}

/// Begins a request.
pub fn begin(api: &Api, visitor: &AnonymousSender, body: &[u8]) -> EndpointResult {
    let checked = api.schemas.device.check(body)?;
    let name = checked.text("name").unwrap_or(NAME).to_owned();
    checked.errors.into_result()?;
    let device = api.accounts.begin_device(name, visitor.network)?;
    let base_url = api.app.config().base_url();
    let wire = DeviceWire {
        device_code: device.device_code.expose(),
        user_code: &device.user_code,
        verification_url: &format!("{base_url}/device#{}", device.user_code),
        interval: INTERVAL.as_secs(),
        expires_in: LIFETIME.as_secs(),
    };
    Ok(EndpointReply::Secret(render(&wire, 256)?))
}

/// Hands out the key of a request that was approved.
pub fn token(api: &Api, body: &[u8]) -> EndpointResult {
    let checked = api.schemas.device_token.check(body)?;
    let device_code = checked.text("device_code").unwrap_or_default().to_owned();
    checked.errors.into_result()?;
    let (error, detail) = match api.accounts.ask_device(&device_code) {
        DeviceAnswer::Granted(key, email) => {
            let wire = json!({ "key": key.expose(), "email": email });
            return Ok(EndpointReply::Secret(render(&wire, 192)?));
        }
        DeviceAnswer::Pending => (
            "authorization_pending",
            "The request is not approved yet; ask again after the interval.",
        ),
        DeviceAnswer::SlowDown => ("slow_down", "Ask less often than once a second."),
        DeviceAnswer::Expired => (
            "expired_token",
            "The request is unknown, used or has expired; begin a new one.",
        ),
        DeviceAnswer::Denied => ("access_denied", "The user has denied the request."),
    };
    let wire = json!({ "error": error, "detail": detail });
    Ok(EndpointReply::Refused(render(&wire, 128)?))
}

/// Approves or denies a request in the name of the caller.
pub async fn approve(api: &Api, caller: &Caller, body: &[u8]) -> EndpointResult {
    let mut checked = api.schemas.device_approval.check(body)?;
    let user_code = checked.text("user_code").unwrap_or_default().to_owned();
    let scopes = checked.texts("scopes").map_or_else(
        || [Scope::Read, Scope::Write].into_iter().collect(),
        |scopes| {
            scopes
                .into_iter()
                .filter_map(Scope::parse)
                .collect::<Scopes>()
        },
    );
    let deny = checked.is_true("deny");
    let expiry = expiry(&mut checked);
    checked.errors.into_result()?;
    if deny {
        api.accounts.deny_device(&user_code)?
    } else {
        let approved = api
            .accounts
            .approve_device(caller, &user_code, scopes, expiry);
        approved.await?;
    }
    Ok(EndpointReply::Gone)
}
