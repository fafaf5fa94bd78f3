//! `POST /api/instance/{uuid}/restart/`.

use super::{Api, Reply, wire};
use wharf_control::{Caller, Selector};
use wharf_domain::error::Error;
use wharf_domain::state::InstanceState;

/// Starts a stopped instance.
pub async fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<Reply, Error> {
    let view = api.app.restart(caller, selector).await?;
    let state = InstanceState::Running.as_str();
    Ok(Reply::Done(wire::action(&view, "restarted", state)?))
}
