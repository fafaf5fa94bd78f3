//! The handler of `GET /api/event/`: a page, or a stream for clients that accept one.

use super::event_stream::{OpenEventStream, Others};
use super::extract::Call;
use super::interface::{Interface, Shared};
use super::respond::{self, Response};
use super::unsent::Streamed;
use crate::api::events::{self, NUMBER, Query};
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use futures_util::stream::unfold;
use http::header::ACCEPT;
use http::{HeaderMap, Uri};
use std::convert::Infallible;
use std::sync::Arc;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::InstanceId;

const LAST_EVENT_ID: &str = "Last-Event-ID";
const EVENT_STREAM: &str = "text/event-stream";

pub(super) async fn handler(
    State(interface): Shared,
    uri: Uri,
    headers: HeaderMap,
    call: Call,
) -> Response {
    let query = Query::parse(form_urlencoded::parse(
        uri.query().unwrap_or_default().as_bytes(),
    ));
    let responded = query.map_err(Error::from).and_then(|mut query| {
        query.after = last_event_id(&headers)?.or(query.after);
        let instance = events::instance(&interface.api, &call.caller, &query)?;
        if accepts_stream(&headers) {
            stream(&interface, &call, instance, &query)
        } else {
            page(&interface, &call, instance, &query)
        }
    });
    responded.unwrap_or_else(|error| call.fail(&error))
}

fn page(
    interface: &Interface,
    call: &Call,
    instance: Option<InstanceId>,
    query: &Query,
) -> Result<Response, Error> {
    let (body, next) = events::page(&interface.api, &call.caller, instance, query)?;
    let link = next.map(|after| {
        let limit = query.limit;
        let of = instance.map(|id| format!("&instance={id}"));
        let of = of.unwrap_or_default();
        format!("</api/event/?limit={limit}&after={after}{of}>; rel=\"next\"")
    });
    Ok(respond::page(body, link))
}

fn stream(
    interface: &Arc<Interface>,
    call: &Call,
    instance: Option<InstanceId>,
    query: &Query,
) -> Result<Response, Error> {
    let app = interface.api.app();
    // Subscribed before the end of the sequence is read.
    let changed = app.events_of(call.caller.user);
    let others = query
        .changes
        .then(|| Others::new(app.topics_of(call.caller.user)));
    let after = match query.after {
        Some(after) => after,
        None => app.last_event(&call.caller)?,
    };
    let permit = match interface.streams.enter(call.caller.user) {
        Ok(permit) => permit,
        Err(refused) => return Ok(refused.into_response()),
    };
    let stream = OpenEventStream {
        interface: Arc::clone(interface),
        caller: call.caller.clone(),
        instance,
        after,
        first: Some(events::ready(after)),
        changed,
        stopped: interface.stopped.clone(),
        access: interface.api.accounts().access_changed(),
        others,
        permit,
    };
    let messages = unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    });
    let mut response = respond::event_stream(Body::from_stream(messages));
    response.extensions_mut().insert(Streamed);
    Ok(response)
}

/// The number of the last event that a client has seen. It replaces `after`, because a client that
/// comes back sends the URL that it began with. An `EventSource` without a number sends no header.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, FieldErrors> {
    let Some(id) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    id.map(Some)
        .ok_or_else(|| FieldErrors::one(LAST_EVENT_ID, NUMBER))
}

/// Whether `Accept` names the type of event streams.
pub(super) fn accepts_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .any(|range| range.trim().eq_ignore_ascii_case(EVENT_STREAM))
}
