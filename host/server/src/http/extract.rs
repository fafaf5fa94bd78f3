//! The parts of a request that handlers take. Extraction follows the contract's order of checks: content
//! type, size and time of the body, then a free place among the running requests.

use super::auth::Authenticated;
use super::body;
use super::budget::{BudgetOwner, Hold};
use super::entity_tags::{Conditions, Tags, read};
use super::interface::Interface;
use super::rate::ends_something;
use super::respond::{self, HttpError, Response};
use super::unsent::own_connection;
use crate::api::{EndpointResult, Sight, tag};
use axum::RequestPartsExt;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use wharf_domain::error::Error;
use wharf_ground::caller::Caller;
use wharf_instances::InstanceCondition;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest idempotency key accepted.
const MAX_KEY: usize = 128;

/// The time for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// The absence of a body. One that is sent is discarded: see [`body::ignore`].
pub(super) struct NoBody;

/// A JSON body, not parsed yet. Its memory is held for its sender until it is dropped.
pub(super) struct Json(pub(super) Bytes, pub(super) Hold);

/// The memory in bytes of a request that waits for its body, without its head: buffers, tasks and state.
const WAITING: u64 = 10 * 1024;

/// A JSON body, or none.
pub(super) struct OptionalJson(pub(super) Option<Json>);

/// An authenticated request. It counts as running until it is dropped.
pub(super) struct Call<B = NoBody> {
    pub(super) caller: Caller,
    /// The condition on the instance that the request changes.
    pub(super) condition: InstanceCondition,
    pub(super) body: B,
    pub(super) _in_flight: OwnedSemaphorePermit,
}

impl<B> Call<B> {
    /// The response to this request; an internal error goes to the log.
    pub(super) fn respond(&self, result: EndpointResult) -> Response {
        respond_to(&self.caller.request_id, result)
    }

    /// The response to a request that failed.
    pub(super) fn fail(&self, error: &Error) -> Response {
        fail(&self.caller.request_id, error)
    }
}

/// The response to a request with this result; an internal error goes to the log.
pub(super) fn respond_to(request_id: &str, result: EndpointResult) -> Response {
    result.map_or_else(|error| fail(request_id, &error), respond::reply)
}

/// The response to a request that failed.
pub(super) fn fail(request_id: &str, error: &Error) -> Response {
    match error {
        Error::Internal(_) => tracing::error!(request_id, error = %error.chain(), "internal error"),
        Error::NodeUnreachable(text) => tracing::warn!(request_id, "node out of reach: {text}"),
        Error::NotStarted(text) => tracing::warn!(request_id, "not started: {text}"),
        Error::Overloaded => tracing::warn!(request_id, "overloaded"),
        _ => {}
    }
    respond::error(error)
}

/// The bytes of the head of a request.
fn head_bytes(request: &Request) -> u64 {
    let uri = request.uri();
    let target = uri.path().len() + uri.query().map_or(0, str::len);
    let headers = request.headers().iter();
    let fields = headers.map(|(name, value)| name.as_str().len() + value.len());
    u64::try_from(target + fields.sum::<usize>()).unwrap_or(u64::MAX)
}

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpError> {
        let awaits_continue = body::awaits_continue(request.version(), request.headers());
        body::ignore(request.into_body(), awaits_continue).await?;
        Ok(Self)
    }
}

impl FromRequest<Arc<Interface>> for Json {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &Arc<Interface>) -> Result<Self, HttpError> {
        body::require_json(request.headers())?;
        let most = if request.uri().path().starts_with("/auth/") {
            body::MAX_AUTH_BYTES
        } else {
            body::MAX_BYTES
        };
        let owner = BudgetOwner::of(request.extensions());
        let begun = state.bodies.hold(owner, WAITING + head_bytes(&request));
        let mut hold = begun.ok_or(HttpError::Busy)?;
        let body = request.into_body();
        let body = body::read(body, most, BODY_TIMEOUT, |bytes| hold.grow(bytes)).await?;
        Ok(Self(body, hold))
    }
}

impl FromRequest<Arc<Interface>> for OptionalJson {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &Arc<Interface>) -> Result<Self, HttpError> {
        let body = if request.headers().contains_key(CONTENT_TYPE) {
            Some(Json::from_request(request, state).await?)
        } else {
            NoBody::from_request(request, state).await.map(|_| None)?
        };
        Ok(Self(body))
    }
}

impl<B> FromRequest<Arc<Interface>> for Call<B>
where
    B: FromRequest<Arc<Interface>, Rejection = HttpError>,
{
    type Rejection = HttpError;

    async fn from_request(mut request: Request, state: &Arc<Interface>) -> Result<Self, HttpError> {
        // The middleware puts it there, so only a route outside of it has none.
        let Some(Authenticated(caller)) = request.extensions_mut().remove() else {
            return Err(HttpError::Unauthorized);
        };
        let tags = if request.method().is_safe() {
            None
        } else {
            tags(request.headers(), IF_MATCH)?.and_then(Tags::strong)
        };
        let condition = tags.map(|tags| tag::condition(tags, Sight::of(caller.scopes)));
        let owner = BudgetOwner::User(caller.user);
        let connection = own_connection(request.extensions());
        // Responses that another key has left unread must not delay the end of something.
        let ends = ends_something(&request);
        let is_full = || !ends && state.unsent.is_full(owner, connection.as_deref());
        if is_full() {
            return Err(HttpError::Busy);
        }
        let body = B::from_request(request, state).await?;
        // The client may have received responses in vain since the request began.
        if is_full() {
            return Err(HttpError::Busy);
        }
        let in_flight = Arc::clone(&state.in_flight).try_acquire_owned();
        Ok(Self {
            caller,
            condition: condition.unwrap_or_default(),
            body,
            _in_flight: in_flight.map_err(|_| HttpError::Busy)?,
        })
    }
}

/// The instance or the ids that a path names. A segment that cannot be decoded names nothing.
pub struct InPath<T>(pub T);

impl<T: Default + DeserializeOwned + Send + 'static, S: Send + Sync> FromRequestParts<S>
    for InPath<T>
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let ids = parts.extract::<Path<T>>().await;
        Ok(Self(ids.map_or_else(|_| T::default(), |Path(ids)| ids)))
    }
}

/// The idempotency key of a request, if it has one.
pub(super) struct IdempotencyHeader(pub(super) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyHeader {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else {
            return Ok(Self(None));
        };
        let right = (1..=MAX_KEY).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic)
            && values.next().is_none();
        match value.to_str() {
            Ok(key) if right => Ok(Self(Some(key.to_owned()))),
            _ => Err(HttpError::IdempotencyKey),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        Ok(Self {
            if_match: tags(&parts.headers, IF_MATCH)?,
            if_none_match: tags(&parts.headers, IF_NONE_MATCH)?,
        })
    }
}

/// The entity tags that a header names, if it is there.
fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Tags>, HttpError> {
    read(headers, &name).map_err(|_| HttpError::EntityTags(name))
}
