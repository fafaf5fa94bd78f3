//! `POST /api/instance/{uuid}/restart/`.

use super::{Api, EndpointReply, Sight, wire};
use wharf_domain::error::Error;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;
use wharf_instances::{InstanceCondition, Selector};

/// Starts a stopped instance.
pub async fn run(
    api: &Api,
    caller: &Caller,
    selector: &Selector,
    condition: &InstanceCondition,
) -> Result<EndpointReply, Error> {
    let view = api.app.restart(caller, selector, condition).await?;
    let state = InstanceState::Running.as_str();
    let sight = Sight::of(caller.scopes);
    let done = match api.app.growing(view.instance.id) {
        Some(moves) => format!("restarted. {}", moves.trim_end_matches('.')),
        None => "restarted".to_owned(),
    };
    let body = wire::action(&view, sight, &done, state)?;
    Ok(EndpointReply::Done(body))
}
