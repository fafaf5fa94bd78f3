//! The cookie of a session, and that of a sign-in at a provider.
//!
//! Browsers send a cookie to all ports of a host, and so to servers in instances if their ports are on
//! the host of the console. Over TLS, the `Secure` cookie is the whole token. Over plain HTTP the cookie
//! lacks the last part of the token. The console keeps that part in the storage of its origin and sends
//! it in a header.

use crate::oidc::LIFETIME;
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use std::fmt::Display;
use wharf_config::{Config, SessionConfig};
use wharf_domain::secret::SecretText;
use wharf_instances::App;

/// The header with the part of a token that no cookie has: in the response to a sign-in, and in the
/// requests of a page.
pub(super) const PART: HeaderName = HeaderName::from_static("wharf-session");

/// A year in seconds.
const YEAR: u64 = 365 * 24 * 3600;

/// A cookie by its purpose, which is the end of its name.
#[derive(Clone, Copy)]
enum CookiePurpose {
    Session,
    /// The cookie ties a sign-in at a provider to its browser.
    Attempt,
    /// The cookie proves that a user has signed in with the browser before. It opens nothing.
    Browser,
}

/// The cookies of this installation.
pub(super) struct Cookies {
    is_https: bool,
    /// Distinguishes the cookies of installations on the ports of one host.
    installation: String,
}

/// A token as a browser gets it.
pub(super) struct IssuedToken {
    /// The header that sets the cookie.
    pub(super) cookie: Option<HeaderValue>,
    /// The part that the page keeps, over plain HTTP.
    pub(super) part: Option<SecretText>,
}

impl Cookies {
    pub(super) fn of(app: &App, config: &Config) -> Self {
        // The end of a UUID is random.
        let id = app.installation();
        let (_, installation) = id.rsplit_once('-').unwrap_or_default();
        Self {
            is_https: config.base_url().is_https(),
            installation: installation.to_owned(),
        }
    }

    /// Whether the cookie of a session is its whole token.
    pub(super) fn are_whole(&self) -> bool {
        self.is_https
    }

    /// The name of a cookie. Over TLS, browsers accept the prefix only from the host itself.
    fn name(&self, purpose: CookiePurpose) -> String {
        let what = match purpose {
            CookiePurpose::Session => "wharf",
            CookiePurpose::Attempt => "wharf-attempt",
            CookiePurpose::Browser => "wharf-browser",
        };
        if self.is_https {
            format!("__Host-{what}")
        } else {
            format!("{what}-{}", self.installation)
        }
    }

    /// Returns the cookies of a session in a request. A page on another port of the host can add some.
    pub(super) fn sessions<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        self.named(CookiePurpose::Session, headers)
    }

    /// Returns the secret of a sign-in at a provider.
    pub(super) fn attempt<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.named(CookiePurpose::Attempt, headers).next()
    }

    /// Returns the proofs that a user has signed in with the browser of a request before.
    pub(super) fn browsers<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        self.named(CookiePurpose::Browser, headers)
    }

    fn named<'a>(
        &self,
        purpose: CookiePurpose,
        headers: &'a HeaderMap,
    ) -> impl Iterator<Item = &'a str> {
        let name = self.name(purpose);
        let values = headers.get_all(COOKIE).iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(move |pair| pair.trim().strip_prefix(&*name)?.strip_prefix('='))
    }

    /// Gives a token to a browser.
    pub(super) fn give(&self, token: &SecretText, config: &SessionConfig) -> IssuedToken {
        let seconds = u64::from(config.absolute_days) * 24 * 3600;
        let text = token.expose();
        let (in_cookie, part) = match text.rsplit_once('.').filter(|_| !self.is_https) {
            Some((rest, part)) => (rest, Some(SecretText::new(part))),
            None => (text, None),
        };
        IssuedToken {
            cookie: self.header(CookiePurpose::Session, in_cookie, seconds),
            part,
        }
    }

    /// Returns the header that gives a browser the proof that a user has signed in with it.
    pub(super) fn give_browser(&self, proof: &SecretText) -> Option<HeaderValue> {
        self.header(CookiePurpose::Browser, proof.expose(), YEAR)
    }

    /// Returns the header that gives a browser the secret of its sign-in at a provider.
    pub(super) fn give_attempt(&self, secret: &SecretText) -> Option<HeaderValue> {
        self.header(CookiePurpose::Attempt, secret.expose(), LIFETIME.as_secs())
    }

    /// Returns the header that removes the secret of a sign-in at a provider.
    pub(super) fn clear_attempt(&self) -> Option<HeaderValue> {
        self.header(CookiePurpose::Attempt, "", 0)
    }

    /// Returns the header that removes the token from a browser.
    pub(super) fn clear(&self) -> Option<HeaderValue> {
        self.header(CookiePurpose::Session, "", 0)
    }

    fn header(
        &self,
        purpose: CookiePurpose,
        value: impl Display,
        max_age: u64,
    ) -> Option<HeaderValue> {
        let name = self.name(purpose);
        let secure = if self.is_https { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
        let mut header = HeaderValue::try_from(text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cookies, SessionConfig};
    use http::header::{COOKIE, HeaderMap, HeaderValue};
    use wharf_domain::secret::SecretText;

    #[test]
    fn cookies() {
        let [http, https] = [false, true].map(|is_https| Cookies {
            is_https,
            installation: "a165".to_owned(),
        });
        let (token, config) = (SecretText::new("1.s.p"), SessionConfig::default());
        let whole = https.give(&token, &config);
        assert_eq!(
            whole.cookie.unwrap(),
            "__Host-wharf=1.s.p; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure"
        );
        assert!(whole.part.is_none());
        let divided = http.give(&token, &config);
        assert_eq!(
            divided.cookie.unwrap(),
            "wharf-a165=1.s; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax"
        );
        assert_eq!(divided.part.unwrap().expose(), "p");
        assert_eq!(
            http.clear().unwrap(),
            "wharf-a165=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
        let mut headers = HeaderMap::new();
        assert_eq!(http.sessions(&headers).next(), None);
        headers.append(
            COOKIE,
            HeaderValue::from_static("a=b; wharf-a166=1; wharf=2"),
        );
        let more = "__Host-wharf=x;wharf-a165=y; wharf-a165=z";
        headers.append(COOKIE, HeaderValue::from_static(more));
        assert!(http.sessions(&headers).eq(["y", "z"]));
        assert!(https.sessions(&headers).eq(["x"]));
    }
}
