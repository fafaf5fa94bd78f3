//! `POST /api/instance/{uuid}/recreate/`.

use super::{Api, EndpointReply, Sight, wire};
use wharf_control::{Caller, Selector};
use wharf_domain::error::Error;

/// Creates an instance again whose host was lost.
pub async fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<EndpointReply, Error> {
    let view = api.app.recreate(caller, selector).await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Instance(
        wire::instance(&view, sight)?,
        sight,
    ))
}
