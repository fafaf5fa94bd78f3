//! `POST /api/instance/{uuid}/recreate/`.

use super::{Api, EndpointReply, Sight, wire};
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;
use wharf_instances::{InstanceCondition, Selector};

/// Creates an instance again whose host was lost.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    condition: &InstanceCondition,
) -> Result<EndpointReply, Error> {
    let view = api.app.recreate(caller, selector, condition).await?;
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Instance(
        wire::instance(&view, sight)?,
        sight,
    ))
}
