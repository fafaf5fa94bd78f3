//! The connection to a server.

use crate::request::Request;
use crate::unreachable::Destination;
use crate::{Error, Secret, tls};
use http::Method;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Url, redirect};
use rustls::ClientConfig;
use std::path::Path;
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A restart waits for its node, and a stream has a heartbeat every 15 seconds.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of a path segment that stay as they are.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A client of one server, for one user.
///
/// It trusts the certificates of the operating system; `SSL_CERT_FILE` names a file of others. It uses the
/// proxies of the environment, except for servers on this machine. It waits up to a minute for a server
/// that has had too many requests.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    base: Url,
    pub(crate) server: Destination,
}

impl Client {
    /// Creates a client of the server at `url`, with an API key for all operations but the public ones.
    pub fn new(url: &str, key: Option<Secret>) -> Result<Self, Error> {
        let base = base(url)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let value = HeaderValue::try_from(format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| Error::Key)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_LIMIT)
            .read_timeout(READ_LIMIT);
        let server = Destination::new(&base);
        Self::build(base, server, http, tls::trusting_system())
    }

    /// Creates a client of the server at a Unix socket, which has `limit` for each answer. It waits for no
    /// server with too many requests.
    pub fn at_socket(socket: &Path, limit: Duration) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            .unix_socket(socket)
            .timeout(limit);
        let base = base("http://localhost")?;
        let server = Destination::of_socket(socket);
        Self::build(base, server, http, tls::trusting_none())
    }

    fn build(
        base: Url,
        server: Destination,
        mut http: reqwest::ClientBuilder,
        tls: Result<ClientConfig, rustls::Error>,
    ) -> Result<Self, Error> {
        if server.proxy.is_none() {
            http = http.no_proxy();
        }
        let http = http
            .user_agent(concat!("wharf-client/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .tls_backend_preconfigured(tls.map_err(|error| Error::Setup(error.into()))?)
            .build()
            .map_err(|error| Error::Setup(error.into()))?;
        Ok(Self { http, base, server })
    }

    /// The URL of the server, with a slash at its end.
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Prepares a request to a path such as `/api/instance/?limit=10`. The generated methods are for
    /// the operations of the interface; this one is for any other.
    pub fn request<T>(&self, method: Method, path: &str) -> Request<'_, T> {
        let relative = path.strip_prefix('/').filter(|rest| !rest.starts_with('/'));
        let url = relative.and_then(|relative| self.base.join(relative).ok());
        // The key is for this server only.
        let url = url.filter(|url| url.origin() == self.base.origin());
        let url = url.ok_or_else(|| Error::Path(path.to_owned()));
        Request::new(self, method, url)
    }

    /// Prepares a request to a path whose `{parameters}` are replaced by `segments`, in their order.
    pub(crate) fn operation<T>(
        &self,
        method: Method,
        template: &str,
        segments: &[&str],
    ) -> Request<'_, T> {
        let mut segments = segments.iter();
        let mut path = String::new();
        for part in template.split('/').skip(1) {
            path.push('/');
            if !part.starts_with('{') {
                path.push_str(part);
                continue;
            }
            match segments.next().copied().unwrap_or_default() {
                // These would name another path.
                name @ ("" | "." | "..") => {
                    return Request::new(self, method, Err(Error::Name(name.to_owned())));
                }
                name => path.extend(utf8_percent_encode(name, SEGMENT)),
            }
        }
        self.request(method, &path)
    }
}

fn base(text: &str) -> Result<Url, Error> {
    let wrong = || Error::Url(text.to_owned());
    let mut url = Url::parse(text).map_err(|_| wrong())?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() || !is_plain {
        return Err(wrong());
    }
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}
