//! The origin of a request: a page of the console, or another one. Browsers send the headers, and no
//! page can forge them.

use axum::extract::Request;
use http::header::{HOST, ORIGIN, UPGRADE};
use http::uri::Authority;
use http::{HeaderName, Uri};
use wharf_config::Config;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a request with a cookie needs a proof of its origin. A WebSocket has no other protection.
pub(super) fn needs_proof(request: &Request) -> bool {
    !request.method().is_safe() || request.headers().contains_key(UPGRADE)
}

/// Whether a request comes from a page of the console.
pub(super) fn is_proven(request: &Request, config: &Config) -> bool {
    match header(request, &ORIGIN) {
        Some(origin) if is_console(origin, request, config) => true,
        _ => header(request, &SEC_FETCH_SITE) == Some("same-origin"),
    }
}

/// Whether a request without a session comes from a page elsewhere: it must not sign in there. Programs
/// send neither header.
pub(super) fn is_foreign(request: &Request, config: &Config) -> bool {
    match header(request, &ORIGIN) {
        Some(origin) => !is_console(origin, request, config) || has_host(origin, &config.web.host),
        None => header(request, &SEC_FETCH_SITE).is_some_and(|site| site != "same-origin"),
    }
}

/// Whether an origin is that of `base_url`, or of the host of the request.
fn is_console(origin: &str, request: &Request, config: &Config) -> bool {
    if origin == config.base_url().origin() {
        return true;
    }
    let host = header(request, &HOST).or_else(|| request.uri().authority().map(Authority::as_str));
    let of_origin = origin.split_once("://").map(|(_, host)| host);
    host.is_some() && host == of_origin
}

fn has_host(origin: &str, host: &str) -> bool {
    let uri = origin.parse::<Uri>();
    uri.is_ok_and(|uri| {
        uri.host()
            .is_some_and(|name| name.eq_ignore_ascii_case(host))
    })
}

fn header<'a>(request: &'a Request, name: &HeaderName) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}
