//! Servers that cannot be reached, with the reason in words.

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use rustls::{CertificateError, Error as TlsError};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::Path;

/// A server that could not be reached, or whose connection broke.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unreachable {
    /// The URL of the server, or the path of its socket.
    pub url: String,
    /// The proxy that the environment names for it.
    pub proxy: Option<String>,
    /// The reason, in words.
    pub reason: String,
    source: reqwest::Error,
}

impl Unreachable {
    /// Whether there was no connection, so that the request had no effect.
    pub fn is_connect(&self) -> bool {
        self.source.is_connect()
    }

    /// The server, and the proxy before it.
    pub(crate) fn place(&self) -> String {
        place(&self.url, self.proxy.as_deref())
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not reachable: {}", self.place(), self.reason)
    }
}

fn place(url: &str, proxy: Option<&str>) -> String {
    let through = proxy.map_or(String::new(), |proxy| {
        format!(" through the proxy {proxy} of the environment")
    });
    format!("the server {url}{through}")
}

/// A server, and the proxy before it.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// The URL, or the path of a socket.
    place: String,
    /// Whether it is TLS; none at a socket.
    tls: Option<bool>,
    pub proxy: Option<String>,
}

impl Destination {
    /// The environment may name a proxy, but none for this machine: it would see the key.
    pub fn new(url: &Url) -> Self {
        let destination: Option<http::Uri> = url.as_str().parse().ok();
        let proxy = destination
            .filter(|_| !is_loopback(url))
            .and_then(|destination| Matcher::from_system().intercept(&destination));
        Self {
            place: url.to_string(),
            tls: Some(url.scheme() == "https"),
            // Without the user name and password that the variable may have.
            proxy: proxy.map(|proxy| {
                let (uri, port) = (proxy.uri(), proxy.uri().port_u16());
                let port = port.map_or(String::new(), |port| format!(":{port}"));
                let scheme = uri.scheme_str().unwrap_or("http");
                format!("{scheme}://{}{port}", uri.host().unwrap_or_default())
            }),
        }
    }

    pub fn of_socket(socket: &Path) -> Self {
        Self {
            place: socket.display().to_string(),
            tls: None,
            proxy: None,
        }
    }

    pub fn is_socket(&self) -> bool {
        self.tls.is_none()
    }

    /// The server, and the proxy before it.
    pub fn place(&self) -> String {
        place(&self.place, self.proxy.as_deref())
    }

    pub fn unreachable(&self, error: reqwest::Error) -> crate::Error {
        // The text of the error has the URL, which messages name anyway.
        let source = error.without_url();
        let is_late = source.is_timeout() && !source.is_connect();
        let unreachable = Box::new(Unreachable {
            url: self.place.clone(),
            proxy: self.proxy.clone(),
            reason: reason(&source, self.tls),
            source,
        });
        if is_late {
            crate::Error::TimedOut(unreachable)
        } else {
            crate::Error::Unreachable(unreachable)
        }
    }
}

/// Whether the URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let name = host.trim_end_matches('.');
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The error and its causes. Those of the standard library hide an error that they carry.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let carried = error.downcast_ref().and_then(io::Error::get_ref);
        match carried {
            Some(carried) => Some(carried as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

const IS_PLAIN: &str = "; if it has no TLS, its URL begins with http://";
const IS_TLS: &str = "; if it has TLS, its URL begins with https://";

fn reason(error: &reqwest::Error, tls: Option<bool>) -> String {
    let is_plain = tls == Some(false);
    if let Some(of_tls) = causes(error).find_map(of_tls) {
        return of_tls;
    }
    if error.is_timeout() {
        let is_connect = error.is_connect();
        let reason = if is_connect {
            "it takes no connection"
        } else {
            "it did not answer in time"
        };
        return reason.to_owned();
    }
    if causes(error).any(|cause| cause.to_string() == "dns error") {
        return "its host name has no address".to_owned();
    }
    let of_hyper = |cause: &'_ (dyn Error + 'static)| {
        let error = cause.downcast_ref::<hyper::Error>()?;
        Some((error.is_parse(), error.is_incomplete_message()))
    };
    let (is_strange, is_cut) = causes(error).find_map(of_hyper).unwrap_or_default();
    if is_strange {
        let hint = if is_plain { IS_TLS } else { "" };
        return format!("its answer is not HTTP{hint}");
    }
    let of_io = |cause: &(dyn Error + 'static)| Some(cause.downcast_ref::<io::Error>()?.kind());
    let kind = causes(error).filter_map(of_io).last();
    let hint = match (tls, error.is_connect()) {
        (Some(true), true) => IS_PLAIN,
        (Some(false), false) => IS_TLS,
        _ => "",
    };
    match kind {
        Some(ErrorKind::ConnectionRefused) => "nothing accepts connections there".to_owned(),
        Some(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            format!("it ended the connection without an answer{hint}")
        }
        _ if is_cut => format!("it ended the connection without an answer{hint}"),
        _ => causes(error)
            .last()
            .map_or(String::new(), |last| last.to_string()),
    }
}

fn of_tls(cause: &(dyn Error + 'static)) -> Option<String> {
    let error: &TlsError = cause.downcast_ref()?;
    let words = match error {
        TlsError::InvalidMessage(_) => return Some(format!("its answer is not TLS{IS_PLAIN}")),
        TlsError::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => {
                "its certificate is from an authority that this machine does not trust; the variable \
                 SSL_CERT_FILE can name a file of other authorities"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; the clock of this machine may be wrong"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host name"
            }
            // The name of the case is the only part that rustls passes on.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                "its certificate is that of an authority; the server needs one that the authority \
                 has issued to it"
            }
            _ => return Some(format!("its certificate is not valid: {error}")),
        },
        _ => return Some(format!("TLS failed: {error}")),
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;
    use reqwest::Url;

    #[test]
    fn this_machine_has_many_names() {
        for (url, expected) in [
            ("http://localhost:80/", true),
            ("http://LOCALHOST./", true),
            ("http://a.localhost/", true),
            ("http://127.3.2.1/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example.org/", false),
            ("http://192.0.2.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
