//! `DELETE /api/instance/{uuid}/`.

use super::{EndpointReply, EndpointRequest, EndpointResult};
use wharf_instances::Selector;

/// Gone for its user from now on.
pub async fn run(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    api.app.delete(caller, selector, condition).await?;
    Ok(EndpointReply::Gone)
}
