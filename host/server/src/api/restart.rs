//! `POST /api/instance/{uuid}/restart/`.

use super::{EndpointReply, EndpointRequest, EndpointResult, Sight, wire};
use wharf_domain::state::InstanceState;
use wharf_instances::Selector;

/// Starts a stopped instance.
pub async fn run(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let condition = &request.condition;
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
