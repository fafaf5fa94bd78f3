//! Handlers of requests that an endpoint answers alone, from its caller, its path and its body.

use super::budget::Hold;
use super::extract::{Call, InPath, Json, NoBody, OptionalJson, respond_to};
use super::interface::Interface;
use super::respond::{HttpError, Response};
use crate::api::{EndpointRequest, EndpointResult};
use axum::RequestExt;
use axum::extract::{FromRequest, Request};
use axum::handler::Handler;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;

/// The handler of an endpoint.
#[derive(Clone)]
pub(super) struct Endpoint<F>(pub(super) F);

/// The handler of an endpoint that waits for nothing.
pub(super) fn reader<At, B>(
    run: impl Fn(EndpointRequest<At, B>) -> EndpointResult + Clone,
) -> Endpoint<impl Fn(EndpointRequest<At, B>) -> Ready<EndpointResult> + Clone> {
    Endpoint(move |request| ready(run(request)))
}

/// The body of a request to an endpoint.
pub(super) trait EndpointBody: Send + Sized + 'static {
    type Received: FromRequest<Arc<Interface>, Rejection = HttpError> + Send;

    /// The body, and the memory that is held for it.
    fn new(received: Self::Received) -> (Self, Option<Hold>);
}

impl EndpointBody for () {
    type Received = NoBody;

    fn new(_: NoBody) -> (Self, Option<Hold>) {
        ((), None)
    }
}

impl EndpointBody for Bytes {
    type Received = Json;

    fn new(Json(body, hold): Json) -> (Self, Option<Hold>) {
        (body, Some(hold))
    }
}

impl EndpointBody for Option<Bytes> {
    type Received = OptionalJson;

    fn new(OptionalJson(received): OptionalJson) -> (Self, Option<Hold>) {
        received.map(|Json(body, hold)| (body, hold)).unzip()
    }
}

impl<F, Answer, At, B> Handler<(At, B), Arc<Interface>> for Endpoint<F>
where
    F: FnOnce(EndpointRequest<At, B>) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = EndpointResult> + Send,
    At: Default + DeserializeOwned + Send + 'static,
    B: EndpointBody,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, mut request: Request, state: Arc<Interface>) -> Self::Future {
        Box::pin(async move {
            let Ok(InPath(at)) = request.extract_parts::<InPath<At>>().await;
            let call = match Call::<B::Received>::from_request(request, &state).await {
                Ok(call) => call,
                Err(refused) => return refused.into_response(),
            };
            let Call {
                caller,
                condition,
                body,
                _in_flight,
            } = call;
            let (body, _held) = B::new(body);
            let request_id = Arc::clone(&caller.request_id);
            let request = EndpointRequest {
                api: Arc::clone(&state.api),
                caller,
                at,
                condition,
                body,
            };
            respond_to(&request_id, (self.0)(request).await)
        })
    }
}
