//! `GET /api/instance/{uuid}/`.

use super::{Api, EndpointReply, Sight, wire};
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;
use wharf_instances::Selector;

/// One instance.
pub fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<EndpointReply, Error> {
    let view = api.app.get(caller, selector)?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Instance(
        wire::instance(&view, sight)?,
        sight,
    ))
}
