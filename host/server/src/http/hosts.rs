//! Hosts that the interface does not answer for: pages of instances are there, and share no origin with the
//! console.

use super::respond::{HttpError, Response};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::header::HOST;
use http::uri::Authority;
use wharf_config::Domain;

/// Middleware of all routes. It refuses requests for hosts at or below the domain of pages.
pub(super) async fn refuse_pages(
    State(domain): State<Domain>,
    request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get_all(HOST).iter();
    let named = named.filter_map(|host| host.to_str().ok());
    let mut hosts = named.chain(request.uri().authority().map(Authority::as_str));
    if hosts.any(|host| domain.contains(without_port(host))) {
        HttpError::HostOfPages.into_response()
    } else {
        next.run(request).await
    }
}

/// The host of an authority, without the user and the port.
fn without_port(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or(authority);
    host.split(':').next().unwrap_or(host).trim()
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn the_host_of_an_authority() {
        for (authority, host) in [
            ("a.example", "a.example"),
            ("a.example:443", "a.example"),
            ("ann@a.example:443", "a.example"),
            ("a.example.:8", "a.example."),
        ] {
            assert_eq!(without_port(authority), host);
        }
    }
}
