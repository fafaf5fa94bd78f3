//! The cookie of a session, and that of a sign-in at a provider.

use crate::oidc::LIFETIME;
use http::header::{COOKIE, HeaderMap, HeaderValue};
use std::fmt::Display;
use wharf_config::{BaseUrl, SessionConfig};
use wharf_domain::secret::SecretText;

/// The names of a cookie over TLS and without it. Browsers accept the prefix only from the host itself,
/// over TLS.
type Names = (&'static str, &'static str);

const SESSION: Names = ("__Host-wharf", "wharf");
/// The cookie that ties a sign-in at a provider to its browser.
const ATTEMPT: Names = ("__Host-wharf-attempt", "wharf-attempt");

fn name((https, http): Names, base_url: &BaseUrl) -> &'static str {
    match base_url.is_https() {
        true => https,
        false => http,
    }
}

/// Returns the token in the cookie of a request.
pub(super) fn find<'a>(headers: &'a HeaderMap, base_url: &BaseUrl) -> Option<&'a str> {
    find_named(SESSION, headers, base_url)
}

/// Returns the secret of a sign-in at a provider.
pub(super) fn find_attempt<'a>(headers: &'a HeaderMap, base_url: &BaseUrl) -> Option<&'a str> {
    find_named(ATTEMPT, headers, base_url)
}

fn find_named<'a>(names: Names, headers: &'a HeaderMap, base_url: &BaseUrl) -> Option<&'a str> {
    let name = name(names, base_url);
    let values = headers.get_all(COOKIE).iter();
    let mut pairs = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Returns the header that gives the token to a browser.
pub(super) fn set(
    token: &SecretText,
    base_url: &BaseUrl,
    config: &SessionConfig,
) -> Option<HeaderValue> {
    let seconds = u64::from(config.absolute_days) * 24 * 3600;
    header(SESSION, token.expose(), base_url, seconds)
}

/// Returns the header that gives a browser the secret of its sign-in at a provider.
pub(super) fn set_attempt(secret: &SecretText, base_url: &BaseUrl) -> Option<HeaderValue> {
    header(ATTEMPT, secret.expose(), base_url, LIFETIME.as_secs())
}

/// Returns the header that removes the secret of a sign-in at a provider.
pub(super) fn clear_attempt(base_url: &BaseUrl) -> Option<HeaderValue> {
    header(ATTEMPT, "", base_url, 0)
}

/// Returns the header that removes the token from a browser.
pub(super) fn clear(base_url: &BaseUrl) -> Option<HeaderValue> {
    header(SESSION, "", base_url, 0)
}

fn header(
    names: Names,
    value: impl Display,
    base_url: &BaseUrl,
    max_age: u64,
) -> Option<HeaderValue> {
    let (name, secure) = match base_url.is_https() {
        true => (name(names, base_url), "; Secure"),
        false => (name(names, base_url), ""),
    };
    let text = format!("{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::{SessionConfig, clear, find, set};
    use http::header::{COOKIE, HeaderMap, HeaderValue};
    use wharf_config::BaseUrl;
    use wharf_domain::secret::SecretText;

    #[test]
    fn cookies() {
        let url = |text: &str| BaseUrl::try_from(text.to_owned()).unwrap();
        let (http, https) = (url("http://a.example"), url("https://a.example"));
        let (token, config) = (SecretText::new("t"), SessionConfig::default());
        assert_eq!(
            set(&token, &https, &config).unwrap(),
            "__Host-wharf=t; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            clear(&http).unwrap(),
            "wharf=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
        let mut headers = HeaderMap::new();
        assert_eq!(find(&headers, &http), None);
        headers.append(COOKIE, HeaderValue::from_static("a=b; wharfx=1"));
        headers.append(COOKIE, HeaderValue::from_static("__Host-wharf=x;wharf=y"));
        assert_eq!(find(&headers, &http), Some("y"));
        assert_eq!(find(&headers, &https), Some("x"));
    }
}
