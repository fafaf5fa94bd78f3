//! Authentication by API key, or by the session in a cookie.

use super::access_log::Entry;
use super::activity::Activity;
use super::interface::Interface;
use super::respond::{HttpError, Response};
use super::{same_origin, session_cookie};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use std::sync::Arc;
use wharf_control::{Caller, Credential};
use wharf_domain::scope::Scope;

/// The path whose requests need a scope of their own.
const METRICS: &str = "/metrics";

const SCHEME: &str = "Bearer";

/// The caller of a request whose key is valid.
#[derive(Clone)]
pub(super) struct Authenticated(pub(super) Caller);

/// Middleware of all routes but the public ones, and of all other paths under `/api/`. Without a key, a
/// response does not reveal which paths exist.
pub(super) async fn authenticate(
    State(interface): State<Arc<Interface>>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_metrics = path == METRICS;
    if is_metrics || path == "/api" || path.starts_with("/api/") {
        let app = interface.api.app();
        let caller = match request.headers().contains_key(AUTHORIZATION) {
            true => bearer(request.headers())
                .and_then(|key| authenticated(&request, |id| app.authenticate(key, id))),
            false => session(&interface, &request),
        };
        let Some(caller) = caller else {
            return HttpError::Unauthorized.into_response();
        };
        if let Some(rates) = &interface.rates
            && let Err(exceeded) = rates.take(&caller.key_id)
        {
            return HttpError::TooManyRequests(exceeded).into_response();
        }
        if caller.credential == Credential::Session
            && same_origin::needs_proof(&request)
            && !same_origin::is_proven(&request, &app.config())
        {
            return HttpError::Origin.into_response();
        }
        let needed = match request.method().is_safe() {
            _ if is_metrics => Scope::Metrics,
            true => Scope::Read,
            false => Scope::Write,
        };
        if !caller.scopes.has(needed) {
            return HttpError::Scope(needed).into_response();
        }
        request.extensions_mut().insert(Authenticated(caller));
    }
    next.run(request).await
}

/// The caller with the session of a request. A request with a key has none.
pub(super) fn session(interface: &Interface, request: &Request) -> Option<Caller> {
    if request.headers().contains_key(AUTHORIZATION) || !request.headers().contains_key(COOKIE) {
        return None;
    }
    let app = interface.api.app();
    let token = session_cookie::find(request.headers(), &app.config().base_url())?;
    authenticated(request, |id| app.authenticate_session(token, id))
}

/// The caller that `find` returns for a request id. The log entry and the connection note its user.
fn authenticated(
    request: &Request,
    find: impl FnOnce(Arc<str>) -> Option<Caller>,
) -> Option<Caller> {
    let entry = request.extensions().get::<Entry>()?;
    let mut caller = find(Arc::clone(&entry.request_id))?;
    let _ = entry.user.set(caller.user);
    if let Some(connection) = request.extensions().get::<Arc<Activity>>() {
        connection.authenticate();
        caller.peer = connection.peer;
    }
    Some(caller)
}

/// The key of `Authorization: Bearer KEY`; none if the header is missing, repeated, or of another
/// form.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = str::from_utf8(values.next()?.as_bytes()).ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_at_checked(SCHEME.len())?;
    let key = key.strip_prefix(' ')?.trim();
    // The lookup rejects all other characters that no key has.
    let one_token = !key.is_empty() && !key.contains(' ');
    (scheme.eq_ignore_ascii_case(SCHEME) && one_token).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::bearer;
    use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_key() {
        for good in ["Bearer abc", "bearer abc", "BEARER   abc"] {
            assert_eq!(bearer(&headers(&[good])), Some("abc"), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic abc",
            "abc",
            "Bearer a b",
            "Bearer\tabc",
        ] {
            assert_eq!(bearer(&headers(&[bad])), None, "{bad}");
        }
        assert_eq!(bearer(&headers(&[])), None);
        assert_eq!(bearer(&headers(&["Bearer abc", "Bearer abc"])), None);
    }
}
