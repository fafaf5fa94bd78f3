//! `GET` and `PATCH /api/preferences/`: the caller's own settings.

use super::{Api, EndpointReply, render};
use crate::schema::Body;
use serde::Serialize;
use serde_json::Value;
use wharf_domain::error::Error;
use wharf_domain::scope::Scope;
use wharf_ground::caller::Caller;

#[derive(Serialize)]
struct PreferencesWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_moves: Option<bool>,
}

/// The settings.
pub fn get(api: &Api, caller: &Caller) -> Result<EndpointReply, Error> {
    let wire = PreferencesWire {
        allow_moves: Some(api.app.allows_moves(caller)?),
    };
    Ok(EndpointReply::Done(render(&wire, 32)?))
}

/// Changes the given settings. A caller without the scope `read` sees these only.
pub async fn update(api: &Api, caller: &Caller, body: &[u8]) -> Result<EndpointReply, Error> {
    let checked = api.schemas.preferences.check(Body::parse(body)?);
    let allow_moves = checked.value("allow_moves").and_then(Value::as_bool);
    checked.errors.into_result()?;
    if let Some(permitted) = allow_moves {
        api.app.allow_moves(caller, permitted).await?;
    }
    if caller.scopes.has(Scope::Read) {
        return get(api, caller);
    }
    Ok(EndpointReply::Done(render(
        &PreferencesWire { allow_moves },
        32,
    )?))
}
