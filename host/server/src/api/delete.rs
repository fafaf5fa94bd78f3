//! `DELETE /api/instance/{uuid}/`.

use super::{Api, EndpointReply};
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;
use wharf_instances::{InstanceCondition, Selector};

/// Gone for its user from now on.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    condition: &InstanceCondition,
) -> Result<EndpointReply, Error> {
    api.app.delete(caller, selector, condition).await?;
    Ok(EndpointReply::Gone)
}
