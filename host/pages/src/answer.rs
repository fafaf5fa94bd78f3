//! The gateway's own answers, as small pages or as text.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// No page elsewhere may show the gateway's own answers in a frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Whether a page has accepted an upgrade.
pub(crate) fn is_upgrade<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// Whether a response has no body and may tell the length of one.
pub(crate) fn is_unmodified<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::NOT_MODIFIED
}

/// An answer that no page gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The request names no host, or two.
    Host,
    /// The host is no address of a page.
    Elsewhere,
    /// The request is malformed.
    Malformed,
    Method,
    NotFound,
    /// A page elsewhere sent the request.
    Foreign,
    /// The ticket is not valid here.
    Ticket,
    /// The visitor has no right. Programs are told how to give a password.
    Unauthorized {
        may_use_password: bool,
    },
    /// Too many passwords were tried.
    TooManyAttempts,
    /// The headers are too large. The cookies may be the cause, and are removed.
    Head {
        /// The headers that remove the cookies of the request, for browsers that do not remove those of a whole
        /// domain by themselves.
        cookies: Vec<HeaderValue>,
    },
    /// Too many connections are open to the page or for the user.
    Busy,
    /// The instance is stopped; with the address where its owner may start it.
    Stopped {
        console: Option<String>,
    },
    Starting,
    /// The server of the page does not answer.
    Unreachable,
    /// The server of the page broke HTTP.
    Broken,
    /// The visitor has to go to another address.
    Redirect {
        to: String,
        cookies: Vec<HeaderValue>,
    },
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Elsewhere => StatusCode::MISDIRECTED_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Foreign | Self::Ticket => StatusCode::FORBIDDEN,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::TooManyAttempts => StatusCode::TOO_MANY_REQUESTS,
            Self::Head { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Busy | Self::Stopped { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Starting | Self::Unreachable | Self::Broken => StatusCode::BAD_GATEWAY,
            Self::Redirect { .. } => StatusCode::SEE_OTHER,
        }
    }

    /// The title and the explanation.
    fn text(&self) -> (&'static str, &'static str) {
        match self {
            Self::Host => ("Bad request", "The request must name one host."),
            Self::Elsewhere => ("No page here", "This address belongs to no page."),
            Self::Malformed => ("Bad request", "The request is malformed."),
            Self::Method => ("Method not allowed", "Pages do not take this method."),
            Self::NotFound => ("Not found", "There is nothing at this address."),
            Self::Foreign => (
                "Refused",
                "Another page sent this request. Open the address in a window of its own.",
            ),
            Self::Ticket => (
                "Sign in again",
                "This ticket was used already, has expired, or is for another browser.",
            ),
            Self::Unauthorized { .. } => (
                "Sign in first",
                "Open the address of the page in a browser, or give the password of the instance.",
            ),
            Self::TooManyAttempts => (
                "Too many attempts",
                "Wait a minute before the next attempt.",
            ),
            Self::Head { .. } => (
                "Headers too large",
                "The headers of the request are too large. The cookies were removed: try again.",
            ),
            Self::Busy => (
                "Too many connections",
                "Close other windows of this page, or wait.",
            ),
            Self::Stopped { .. } => ("Not running", "The instance is stopped."),
            Self::Starting => (
                "Starting",
                "The instance starts. This page opens by itself.",
            ),
            Self::Unreachable => (
                "No answer yet",
                "The page does not answer. This window tries again by itself.",
            ),
            Self::Broken => (
                "Broken answer",
                "The page gave an answer that is no valid HTTP.",
            ),
            Self::Redirect { .. } => ("See other", ""),
        }
    }

    /// Whether the visitor's window tries again by itself.
    fn is_repeated(&self) -> bool {
        matches!(self, Self::Starting | Self::Unreachable)
    }

    pub(crate) fn respond(self, is_html: bool) -> Response<Full<Bytes>> {
        let (title, text) = self.text();
        let body = if is_html && !matches!(self, Self::Redirect { .. }) {
            self.html(title, text)
        } else {
            format!("{title}. {text}\n")
        };
        let kind = if is_html {
            "text/html; charset=utf-8"
        } else {
            "text/plain; charset=utf-8"
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        let mut add = |name, value| headers.insert(name, HeaderValue::from_static(value));
        add(CONTENT_TYPE, kind);
        add(CACHE_CONTROL, "no-store");
        add(REFERRER_POLICY, "no-referrer");
        add(CONTENT_SECURITY_POLICY, POLICY);
        add(X_CONTENT_TYPE_OPTIONS, "nosniff");
        if self.is_repeated() {
            add(RETRY_AFTER, "2");
        }
        match self {
            Self::Unauthorized {
                may_use_password: true,
            } => {
                add(WWW_AUTHENTICATE, "Basic realm=\"page\", charset=\"UTF-8\"");
            }
            Self::Head { cookies } => {
                add(CLEAR_SITE_DATA, "\"cookies\"");
                for cookie in cookies {
                    headers.append(SET_COOKIE, cookie);
                }
            }
            Self::Busy | Self::TooManyAttempts => drop(add(RETRY_AFTER, "30")),
            Self::Redirect { to, cookies } => {
                if let Ok(to) = HeaderValue::try_from(to) {
                    headers.insert(LOCATION, to);
                }
                for cookie in cookies {
                    headers.append(SET_COOKIE, cookie);
                }
            }
            _ => {}
        }
        response
    }

    fn html(&self, title: &str, text: &str) -> String {
        let refresh = if self.is_repeated() {
            "<meta http-equiv=\"refresh\" content=\"2\">"
        } else {
            ""
        };
        let link = match self {
            Self::Stopped { console: Some(url) } => {
                format!(
                    "<p><a href=\"{}\">Start it in the console</a></p>",
                    escaped(url)
                )
            }
            Self::Ticket => "<p><a href=\"/\">Open the page</a></p>".to_owned(),
            _ => String::new(),
        };
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">{refresh}<title>{title}</title>\
             <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;\
             color-scheme:light dark}}</style></head><body><h1>{title}</h1><p>{text}</p>{link}</body></html>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::Answer;
    use http_body_util::BodyExt as _;

    async fn shown(answer: Answer, is_html: bool) -> (http::HeaderMap, String) {
        let response = answer.respond(is_html);
        let headers = response.headers().clone();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_window_that_waits_tries_again_and_an_owner_gets_a_link() {
        let (headers, html) = shown(Answer::Starting, true).await;
        assert!(html.contains("http-equiv=\"refresh\"") && headers["retry-after"] == "2");
        let console = Some("https://wharf.example/?a=\"<b>\"&c".to_owned());
        let (headers, html) = shown(Answer::Stopped { console }, true).await;
        assert!(html.contains("href=\"https://wharf.example/?a=&quot;&lt;b&gt;&quot;&amp;c\""));
        assert!(
            headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("frame-ancestors")
        );
        let (headers, text) = shown(Answer::Stopped { console: None }, false).await;
        assert!(!text.contains('<') && headers["content-type"] == "text/plain; charset=utf-8");
    }
}
