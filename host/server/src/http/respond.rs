//! Responses: the only place that knows status codes.

use super::entity_tags::{Conditions, Decision};
use super::rate::RateExceeded;
use super::session_cookie::{IssuedToken, PART};
use crate::api::shortage::ShortageWire;
use crate::api::tag::tag;
use crate::api::{EndpointReply, Sight};
use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AGE, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, ETAG,
    HeaderValue, IF_MATCH, LINK, LOCATION, RETRY_AFTER, SEC_WEBSOCKET_VERSION, SET_COOKIE, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{StatusCode, header::HeaderName};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use wharf_domain::error::{Error, FieldErrors};

/// The reason for refused creations while the disk is nearly full. `/readyz` shows it too.
pub const DISK_FULL: &str = "The service is short of disk space: it accepts no new instances and no changes, except stops, \
     deletions, revocations and sign-ins.";

/// The notice of `/readyz` once a page of the database was found damaged.
pub const DAMAGED: &str = "A part of the database is damaged: requests that need it get a 500, all others are served. The log \
     of the server names it.";

pub use super::http_error::HttpError;

/// A response; its body is one piece.
pub use axum::response::Response;

/// The result of a handler that may refuse a request before any use case sees it.
pub(super) type HandlerResult = Result<Response, HttpError>;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        http_error(&self)
    }
}

/// Completes a response outside of all routing. Only a 405 names methods, as the router adds `Allow`
/// to every response of its fallback. A connection ends after an unread request body.
pub fn finish<B>(response: &mut http::Response<B>, unread_body: bool) {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().remove(ALLOW);
    }
    if unread_body {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
}

/// The response to a request that was done.
pub fn reply(reply: EndpointReply) -> Response {
    match reply {
        EndpointReply::Done(body) => json_bytes(StatusCode::OK, body),
        EndpointReply::Instance(body, sight) => instance(StatusCode::OK, body, sight),
        EndpointReply::Created(body, sight) => instance(StatusCode::CREATED, body, sight),
        EndpointReply::KeyCreated(body) => not_stored(json_bytes(StatusCode::CREATED, body)),
        EndpointReply::Secret(body) => not_stored(json_bytes(StatusCode::OK, body)),
        EndpointReply::Aged(body, age) => with(json_bytes(StatusCode::OK, body), AGE, age.into()),
        EndpointReply::Accepted(body) => json_bytes(StatusCode::ACCEPTED, body),
        EndpointReply::Refused(body) => json_bytes(StatusCode::BAD_REQUEST, body),
        EndpointReply::Gone => StatusCode::NO_CONTENT.into_response(),
    }
}

/// A response that sends a browser to another page.
pub(super) fn see_other(location: &str) -> Response {
    let Ok(location) = HeaderValue::try_from(location) else {
        return internal_error();
    };
    let response = StatusCode::SEE_OTHER.into_response();
    not_stored(with(response, LOCATION, location))
}

/// A response that gives a cookie to a browser, or takes it back.
pub(super) fn with_cookie(response: Response, cookie: Option<HeaderValue>) -> Response {
    let mut response = not_stored(response);
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// A response that gives a session to a browser.
pub(super) fn with_session(response: Response, given: IssuedToken) -> Response {
    let response = with_cookie(response, given.cookie);
    match given
        .part
        .and_then(|part| HeaderValue::try_from(part.expose()).ok())
    {
        Some(mut part) => {
            part.set_sensitive(true);
            with(response, PART, part)
        }
        None => response,
    }
}

/// A response with a secret, which no cache may store.
fn not_stored(response: Response) -> Response {
    with(
        response,
        CACHE_CONTROL,
        HeaderValue::from_static("no-store"),
    )
}

/// The part of an instance that a caller sees.
fn instance(status: StatusCode, body: Bytes, sight: Sight) -> Response {
    let tag = tag(&body);
    tagged(json_bytes(status, body), &tag, sight)
}

/// A response with an entity tag. A cache must not store passwords, and must ask whether anything else
/// is still valid.
fn tagged(response: Response, tag: &str, sight: Sight) -> Response {
    let response = match sight {
        Sight::Whole => not_stored(response),
        Sight::WithoutPassword | Sight::State => {
            let cached = HeaderValue::from_static("private, no-cache");
            with(response, CACHE_CONTROL, cached)
        }
    };
    match HeaderValue::try_from(format!("\"{tag}\"")) {
        Ok(tag) => with(response, ETAG, tag),
        Err(_) => response,
    }
}

/// The response to a conditional `GET`, from the one without conditions.
pub(super) fn conditional(mut response: Response, conditions: &Conditions) -> Response {
    let tag = response.headers().get(ETAG).and_then(|t| t.to_str().ok());
    let Some(tag) = tag.filter(|_| response.status() == StatusCode::OK) else {
        return response;
    };
    match conditions.decide(tag.trim_matches('"')) {
        Decision::Send => response,
        Decision::NotModified => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = Body::empty();
            for name in [CONTENT_TYPE, CONTENT_ENCODING, LINK] {
                response.headers_mut().remove(name);
            }
            response
        }
        Decision::Failed => error(&Error::PreconditionFailed),
    }
}

/// A page of a list without an entity tag, with the value of its `Link` header.
pub fn page(body: Bytes, link: Option<String>) -> Response {
    linked(json_bytes(StatusCode::OK, body), link)
}

/// A list, with its entity tag and the value of its `Link` header.
pub fn list(body: Bytes, link: Option<String>, tag: &str, sight: Sight) -> Response {
    linked(tagged(json_bytes(StatusCode::OK, body), tag, sight), link)
}

fn linked(response: Response, link: Option<String>) -> Response {
    match link.and_then(|link| HeaderValue::try_from(link).ok()) {
        Some(link) => with(response, LINK, link),
        None => response,
    }
}

/// A stream of events. Proxies must neither keep nor collect it.
pub fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (X_ACCEL_BUFFERING, "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The response to a request that a use case refused.
pub fn error(error: &Error) -> Response {
    match error {
        Error::Fields(FieldErrors(fields)) => json_value(StatusCode::BAD_REQUEST, fields),
        Error::NotFound => detail(StatusCode::NOT_FOUND, "Instance not found."),
        Error::KeyNotFound => detail(StatusCode::NOT_FOUND, "Key not found."),
        Error::Missing(kind) => detail(StatusCode::NOT_FOUND, &format!("{kind} not found.")),
        Error::SignInRefused => detail(
            StatusCode::BAD_REQUEST,
            "The e-mail address or the password is wrong.",
        ),
        Error::StaleSignIn => detail(
            StatusCode::FORBIDDEN,
            "This change needs a sign-in within the last 15 minutes; sign out and sign in again.",
        ),
        Error::State { needed, .. } => {
            let text = format!("{}; it must be {needed}.", sentence(&error.to_string()));
            detail(StatusCode::BAD_REQUEST, &text)
        }
        Error::Suspended { .. } | Error::Refused(_) => {
            let text = format!("{}.", sentence(error.to_string().trim_end_matches('.')));
            detail(StatusCode::BAD_REQUEST, &text)
        }
        Error::NotApplicable(why) => {
            detail(StatusCode::BAD_REQUEST, &format!("{}.", sentence(why)))
        }
        Error::Insufficient(shortfall) => insufficient(&ShortageWire::of_node(shortfall)),
        Error::OverQuota(shortfall) => insufficient(&ShortageWire::of_quota(shortfall)),
        Error::NodeUnreachable(_) => detail(
            StatusCode::BAD_GATEWAY,
            "The host of this instance could not be reached.",
        ),
        Error::NotStarted(_) => detail(
            StatusCode::BAD_GATEWAY,
            "The host of this instance could not start it; it stays stopped.",
        ),
        Error::PreconditionFailed => detail(
            StatusCode::PRECONDITION_FAILED,
            "The ETag is not one of those in If-Match.",
        ),
        Error::IdempotencyKeyBusy => detail(
            StatusCode::CONFLICT,
            "A request with this Idempotency-Key is in progress; retry it shortly.",
        ),
        Error::IdempotencyKeyUsed => detail(
            StatusCode::UNPROCESSABLE_ENTITY,
            "This Idempotency-Key belongs to a request with another body.",
        ),
        Error::TooManyTerminals(limit) => detail(
            StatusCode::TOO_MANY_REQUESTS,
            &format!("You have {limit} open terminals, which is the limit; close one first."),
        ),
        Error::TooManyTunnels(limit) => detail(
            StatusCode::TOO_MANY_REQUESTS,
            &format!("You have {limit} open tunnels, which is the limit; close one first."),
        ),
        Error::Unconnected(why) => detail(StatusCode::BAD_GATEWAY, &format!("{}.", sentence(why))),
        Error::NoTerminalFree => retry_later("No terminal is free; try again shortly."),
        Error::Overloaded => http_error(&HttpError::Busy),
        Error::DiskFull => retry_later(DISK_FULL),
        Error::TooManyRecords {
            retry_after_s,
            per_day,
        } => too_many_requests(&RateExceeded {
            what: "records",
            retry_after: *retry_after_s,
            burst: *per_day,
            window: 24 * 3600,
        }),
        Error::Internal(_) => internal_error(),
    }
}

/// The response to a request that no use case saw.
pub fn http_error(error: &HttpError) -> Response {
    match error {
        HttpError::Unauthorized => with(
            detail(StatusCode::UNAUTHORIZED, "Invalid or missing API key."),
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer"),
        ),
        HttpError::SignedOut => with(
            detail(
                StatusCode::UNAUTHORIZED,
                "This request needs a session; sign in first.",
            ),
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer"),
        ),
        HttpError::Origin(console) => {
            let text = format!(
                "The request does not come from a page of the console, whose address is {console}. If the \
                 browser shows another one, the operator sets `base_url` to it."
            );
            detail(StatusCode::FORBIDDEN, &text)
        }
        HttpError::SignInOff => detail(
            StatusCode::FORBIDDEN,
            "Sign-in is switched off on this server; use an API key.",
        ),
        HttpError::NoPasskeys => detail(
            StatusCode::NOT_FOUND,
            "Passkeys need a host name in `base_url`, and https unless it is localhost.",
        ),
        HttpError::NoProvider => {
            detail(StatusCode::NOT_FOUND, "The configuration has no provider.")
        }
        HttpError::Scope(scope) => {
            let text = format!("This API key lacks the scope `{}`.", scope.as_str());
            detail(StatusCode::FORBIDDEN, &text)
        }
        HttpError::UnknownPath => detail(StatusCode::NOT_FOUND, "Not found."),
        HttpError::Method => detail(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed."),
        HttpError::Slash(location) => match HeaderValue::try_from(location) {
            Ok(location) => with(
                detail(
                    StatusCode::PERMANENT_REDIRECT,
                    "The path must end with a slash.",
                ),
                LOCATION,
                location,
            ),
            Err(_) => detail(StatusCode::NOT_FOUND, "Not found."),
        },
        HttpError::MediaType => detail(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The body must be sent as Content-Type: application/json.",
        ),
        HttpError::ContentCoding => with(
            detail(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body must be sent uncompressed, without Content-Encoding.",
            ),
            ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        ),
        HttpError::TooLarge(most) => {
            let text = format!("The body must not be larger than {} KiB.", most / 1024);
            detail(StatusCode::PAYLOAD_TOO_LARGE, &text)
        }
        HttpError::BodyTimeout => detail(
            StatusCode::REQUEST_TIMEOUT,
            "The body of the request did not arrive in time.",
        ),
        HttpError::BodyBroken => detail(
            StatusCode::BAD_REQUEST,
            "The body of the request could not be read.",
        ),
        HttpError::Host => detail(
            StatusCode::BAD_REQUEST,
            "The request must have exactly one Host header.",
        ),
        HttpError::HostOfPages => detail(
            StatusCode::MISDIRECTED_REQUEST,
            "This host is for pages of instances; the service has another one.",
        ),
        HttpError::EntityTags(name) => {
            let (field, message) = entity_tags(name);
            error_of_field(field, message)
        }
        HttpError::IdempotencyKey => error_of_field(
            "Idempotency-Key",
            "must be given once, as 1 to 128 printable ASCII characters without spaces",
        ),
        HttpError::NoUpgrade => no_upgrade(),
        HttpError::TooManyRequests(exceeded) => too_many_requests(exceeded),
        HttpError::TooManyStreams(most) => {
            let text =
                format!("You have {most} open event streams, which is the limit; close one first.");
            let response = detail(StatusCode::TOO_MANY_REQUESTS, &text);
            with(response, RETRY_AFTER, HeaderValue::from_static("1"))
        }
        HttpError::Busy => retry_later("The service is busy; try again shortly."),
        HttpError::NotReady => retry_later("The service is not ready."),
    }
}

/// The response to a request whose handler failed or panicked.
pub fn internal_error() -> Response {
    detail(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Internal error. The service's log has it under the request id.",
    )
}

/// A page or a file of the service's own.
pub fn document(content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// `200` with a small JSON value.
pub fn ok(value: &impl Serialize) -> Response {
    json_value(StatusCode::OK, value)
}

fn insufficient(shortage: &ShortageWire<'_>) -> Response {
    json_value(
        StatusCode::UNPROCESSABLE_ENTITY,
        &BTreeMap::from([("detail", shortage)]),
    )
}

/// The protocol that the resource needs instead. HTTP/2 has no such headers, and they are left out.
fn no_upgrade() -> Response {
    let text = "This path needs a WebSocket of version 13 over HTTP/1.1.";
    let mut response = detail(StatusCode::UPGRADE_REQUIRED, text);
    for (name, value) in [
        (CONNECTION, "upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_VERSION, "13"),
    ] {
        response = with(response, name, HeaderValue::from_static(value));
    }
    response
}

fn retry_later(text: &str) -> Response {
    let response = detail(StatusCode::SERVICE_UNAVAILABLE, text);
    with(response, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// A 400 on a header; a client finds it as it finds a wrong field.
fn error_of_field(field: &str, message: &str) -> Response {
    error(&FieldErrors::one(field, message).into())
}

fn entity_tags(name: &HeaderName) -> (&'static str, &'static str) {
    let field = if *name == IF_MATCH {
        "If-Match"
    } else {
        "If-None-Match"
    };
    (
        field,
        "must be * or entity tags in double quotes, such as \"5f2c\"",
    )
}

/// The fields `RateLimit-Policy` and `RateLimit` are those of draft-ietf-httpapi-ratelimit-headers-10.
fn too_many_requests(exceeded: &RateExceeded) -> Response {
    let RateExceeded {
        what,
        retry_after,
        burst,
        window,
    } = exceeded;
    let text = match *what {
        "key" => "This API key has sent too many requests; retry after the time in Retry-After.",
        "user" => {
            "Your API keys and sessions have sent too many requests; retry after the time in Retry-After."
        }
        "records" => {
            "Your changes have used up their budget for a day; retry after the time in Retry-After. \
             Stops, deletions, revocations and sign-ins are accepted."
        }
        _ => "Too many attempts; retry after the time in Retry-After.",
    };
    let mut response = detail(StatusCode::TOO_MANY_REQUESTS, text);
    let policy = format!("\"{what}\";q={burst};w={window}");
    let left = format!("\"{what}\";r=0;t={retry_after}");
    for (name, value) in [
        (RETRY_AFTER, retry_after.to_string()),
        (RATE_LIMIT_POLICY, policy),
        (RATE_LIMIT, left),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            response = with(response, name, value);
        }
    }
    response
}

/// The text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

fn detail(status: StatusCode, text: &str) -> Response {
    json_value(status, &json!({ "detail": text }))
}

fn json_value(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => json_bytes(status, body.into()),
        Err(_) => json_bytes(
            StatusCode::INTERNAL_SERVER_ERROR,
            Bytes::from_static(b"{\"detail\":\"Internal error.\"}"),
        ),
    }
}

fn json_bytes(status: StatusCode, body: Bytes) -> Response {
    let mut response = document("application/json", body);
    *response.status_mut() = status;
    response
}

fn with(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests;
