//! `DELETE /api/instance/{uuid}/`.

use super::{Api, EndpointReply};
use wharf_control::{Caller, Selector};
use wharf_domain::error::Error;

/// Gone for its user from now on.
pub async fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<EndpointReply, Error> {
    api.app.delete(caller, selector).await?;
    Ok(EndpointReply::Gone)
}
