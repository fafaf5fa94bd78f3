//! `GET /api/instance/{uuid}/`.

use super::{Api, EndpointReply, EndpointResult};
use wharf_ground::caller::Caller;
use wharf_instances::Selector;

/// One instance.
pub fn run(api: &Api, caller: &Caller, selector: &Selector) -> EndpointResult {
    let view = api.app.get(caller, selector)?;
    EndpointReply::instance(caller, &view)
}
