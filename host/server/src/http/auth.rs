//! Authentication by API key, or by the session in a cookie.

use super::access_log::Entry;
use super::activity::Activity;
use super::client::client;
use super::events::accepts_stream;
use super::interface::{Interface, Shared};
use super::respond::{HttpError, Response};
use super::same_origin;
use super::session_cookie::{Cookies, PART};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE, UPGRADE};
use std::sync::Arc;
use wharf_accounts::Accounts;
use wharf_domain::scope::Scope;
use wharf_domain::secret::SecretText;
use wharf_ground::caller::{Caller, Credential};

/// The path whose requests need a scope of their own.
const METRICS: &str = "/metrics";

const SCHEME: &str = "Bearer";

/// The caller of a request whose key is valid.
#[derive(Clone)]
pub(super) struct Authenticated(pub(super) Caller);

/// Middleware of all routes but the public ones, and of all other paths under `/api/`. Without a key, a
/// response does not reveal which paths exist.
pub(super) async fn authenticate(
    State(interface): Shared,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_metrics = path == METRICS;
    if is_metrics || path == "/api" || path.starts_with("/api/") {
        let (app, accounts) = (interface.api.app(), interface.api.accounts());
        let caller = if request.headers().contains_key(AUTHORIZATION) {
            bearer(request.headers())
                .and_then(|key| authenticated(&request, |id| accounts.keys.authenticate(key, id)))
        } else {
            session(&interface, &request)
        };
        let Some(caller) = caller else {
            return HttpError::Unauthorized.into_response();
        };
        if let Err(exceeded) = interface.rates.take(&caller, &request) {
            return HttpError::TooManyRequests(exceeded).into_response();
        }
        if caller.credential == Credential::Session
            && same_origin::needs_proof(&request)
            && !same_origin::is_proven(&request, &app.config())
        {
            let console = same_origin::shown(&request, &app.config());
            return HttpError::Origin(console).into_response();
        }
        let needed: &[Scope] = if is_metrics {
            &[Scope::Metrics]
        } else if request.method().is_safe() {
            &[Scope::Read]
        } else if reads_on(path) {
            &[Scope::Write, Scope::Read]
        } else {
            &[Scope::Write]
        };
        if let Some(lacking) = needed.iter().find(|scope| !caller.scopes.has(**scope)) {
            return HttpError::Scope(*lacking).into_response();
        }
        request.extensions_mut().insert(Authenticated(caller));
    }
    next.run(request).await
}

/// Whether a change at this path lets its maker read more later: a webhook reads events, and a bucket the disks of
/// instances.
fn reads_on(path: &str) -> bool {
    let mut segments = path.strip_prefix("/api/").unwrap_or_default().split('/');
    match segments.next() {
        Some("webhook" | "bucket" | "backup") => true,
        Some("instance" | "volume") => {
            matches!(segments.nth(1), Some("backup" | "backup-plan"))
        }
        _ => false,
    }
}

/// The caller with the session of a request. A request with a key has none.
pub(super) fn session(interface: &Interface, request: &Request) -> Option<Caller> {
    if request.headers().contains_key(AUTHORIZATION) || !request.headers().contains_key(COOKIE) {
        return None;
    }
    let (app, accounts) = (interface.api.app(), interface.api.accounts());
    let cookies = Cookies::of(app, &app.config());
    let part = if cookies.are_whole() {
        None
    } else {
        Some(part(accounts, request)?)
    };
    let mut sessions = cookies.sessions(request.headers());
    sessions.find_map(|cookie| {
        let token = match &part {
            Some(part) => SecretText::new(format!("{cookie}.{}", part.expose())),
            None => SecretText::new(cookie),
        };
        authenticated(request, |id| {
            accounts.authenticate_session(token.expose(), id)
        })
    })
}

/// The part of a token that no cookie has: from the header, or for the ticket of a WebSocket or an event
/// stream.
fn part(accounts: &Accounts, request: &Request) -> Option<SecretText> {
    if let Some(part) = request.headers().get(PART) {
        return part.to_str().ok().map(SecretText::new);
    }
    let headers = request.headers();
    if !headers.contains_key(UPGRADE) && !accepts_stream(headers) {
        return None;
    }
    let query = request.uri().query().unwrap_or_default();
    let mut query = form_urlencoded::parse(query.as_bytes());
    let (_, ticket) = query.find(|(name, _)| name == "ticket")?;
    accounts.spend_ticket(&ticket)
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
    }
    caller.peer = client(request.extensions()).map(|client| client.address);
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
