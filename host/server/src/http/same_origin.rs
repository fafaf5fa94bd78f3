//! The origin of a request: a page of the console, or another one. Browsers send the headers, and no
//! page can forge them.

use axum::extract::Request;
use http::HeaderName;
use http::Uri;
use http::header::{HOST, ORIGIN, UPGRADE};
use http::uri::Authority;
use wharf_config::host::in_url;
use wharf_config::{BaseUrl, Config};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a request with a cookie needs a proof of its origin. A WebSocket has no other protection.
pub(super) fn needs_proof(request: &Request) -> bool {
    !request.method().is_safe() || request.headers().contains_key(UPGRADE)
}

/// Whether a request comes from a page of the console.
pub(super) fn is_proven(request: &Request, config: &Config) -> bool {
    match (site(request), header(request, &ORIGIN)) {
        (Some("cross-site"), _) => false,
        (_, Some(origin)) => is_console(origin, request, config),
        (site, None) => site == Some("same-origin"),
    }
}

/// Whether a request without a session comes from a page elsewhere: it must not sign in there. Programs
/// send neither header.
pub(super) fn is_foreign(request: &Request, config: &Config) -> bool {
    match (site(request), header(request, &ORIGIN)) {
        (Some("cross-site"), _) => true,
        (_, Some(origin)) => {
            !is_console(origin, request, config) || has_host(origin, &config.web.host)
        }
        (site, None) => site.is_some_and(|site| site != "same-origin"),
    }
}

/// The origin of the console's pages: that of `base_url`. Where it is not set, it is the scheme, host and
/// port of the request.
fn of_console(request: &Request, config: &Config) -> BaseUrl {
    let own = || {
        let scheme = if config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let host =
            header(request, &HOST).or_else(|| request.uri().authority().map(Authority::as_str))?;
        BaseUrl::try_from(format!("{scheme}://{host}")).ok()
    };
    let set = config.base_url.clone();
    set.or_else(own).unwrap_or_else(|| config.base_url())
}

/// The address of the console for a page that is refused. None signs in on the host of instances' pages.
pub(super) fn shown(request: &Request, config: &Config) -> BaseUrl {
    let console = of_console(request, config);
    if console.host().eq_ignore_ascii_case(&config.web.host) {
        config.base_url()
    } else {
        console
    }
}

fn is_console(origin: &str, request: &Request, config: &Config) -> bool {
    origin == of_console(request, config).origin()
}

fn has_host(origin: &str, host: &str) -> bool {
    let (uri, host) = (origin.parse::<Uri>(), in_url(host));
    uri.is_ok_and(|uri| {
        uri.host()
            .is_some_and(|name| name.eq_ignore_ascii_case(&host))
    })
}

fn site(request: &Request) -> Option<&str> {
    header(request, &SEC_FETCH_SITE)
}

fn header<'a>(request: &'a Request, name: &HeaderName) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}
