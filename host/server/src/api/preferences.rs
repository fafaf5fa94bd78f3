//! `GET` and `PATCH /api/preferences/`: the caller's own settings.

use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use wharf_domain::scope::Scope;

#[derive(Serialize)]
struct PreferencesWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_moves: Option<bool>,
}

/// The settings.
pub fn get(request: EndpointRequest) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    reply(Some(api.app.allows_moves(caller)?))
}

/// Changes the given settings. A caller without the scope `read` sees these only.
pub async fn update(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let checked = api.schemas.preferences.check(&request.body)?;
    let allow_moves = checked.value("allow_moves").and_then(Value::as_bool);
    checked.errors.into_result()?;
    if let Some(permitted) = allow_moves {
        api.app.allow_moves(caller, permitted).await?;
    }
    if caller.scopes.has(Scope::Read) {
        return reply(Some(api.app.allows_moves(caller)?));
    }
    reply(allow_moves)
}

fn reply(allow_moves: Option<bool>) -> EndpointResult {
    let wire = PreferencesWire { allow_moves };
    Ok(EndpointReply::Done(render(&wire, 32)?))
}
