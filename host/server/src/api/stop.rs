//! `POST /api/instance/{uuid}/stop/`.

use super::{EndpointReply, EndpointRequest, EndpointResult, Sight, wire};
use wharf_domain::state::InstanceState;
use wharf_instances::{Selector, Stopped};

/// Stops a running instance. The result says `shut_off` for a container too, although later reads
/// say `exited`: specification 4.5.
pub async fn run(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
    let (view, outcome) = api.app.stop(caller, selector, condition).await?;
    let state = InstanceState::ShutOff.as_str();
    let done = match outcome {
        Stopped::Done => "stopped",
        Stopped::UnderWay => "is being stopped; its host has not confirmed it yet",
        Stopped::Away => {
            "is recorded as stopped; its host is out of reach and stops it when it is back"
        }
    };
    let sight = Sight::of(caller.scopes);
    Ok(EndpointReply::Done(wire::action(
        &view, sight, done, state,
    )?))
}
