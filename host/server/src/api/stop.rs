//! `POST /api/instance/{uuid}/stop/`.

use super::{Api, Reply, wire};
use wharf_control::{Caller, Selector};
use wharf_domain::error::Error;
use wharf_domain::state::InstanceState;

/// Stops a running instance. The result says `shut_off` for a container too, although later reads
/// say `exited`: specification 4.5.
pub async fn run(api: &Api, caller: &Caller, selector: &Selector) -> Result<Reply, Error> {
    let view = api.app.stop(caller, selector).await?;
    let state = InstanceState::ShutOff.as_str();
    Ok(Reply::Done(wire::action(&view, "stopped", state)?))
}
