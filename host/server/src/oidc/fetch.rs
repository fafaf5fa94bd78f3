//! Requests to the provider: protected, without redirects, and bounded.

use super::SignInFailure;
use form_urlencoded::byte_serialize;
use http::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, redirect};
use serde::de::DeserializeOwned;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;
use wharf_client::tls;
use wharf_config::is_protected;
use wharf_domain::error::causes;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The time for a whole request, during which a person waits.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of a response. Documents and keys have some KiB.
const MAX_BYTES: usize = 1 << 20;
/// The status of a response with a document or a token.
pub(super) const OK: u16 = 200;

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the HTTP client cannot be used")]
    NoClient,
    #[error("the URL is neither https nor on this machine")]
    Unprotected,
    #[error("the response is larger than 1 MiB")]
    TooLarge,
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
    #[error("the status is {0}")]
    Status(u16),
    #[error("the response is not as the standard says")]
    Response(#[from] serde_json::Error),
}

impl FetchError {
    /// The failure of a sign-in for this reason.
    pub(super) fn failure(&self) -> SignInFailure {
        let Self::Request(error) = self else {
            return SignInFailure::Unusable;
        };
        if causes(error).any(is_of_certificate) {
            SignInFailure::Untrusted
        } else if error.is_builder() {
            SignInFailure::Unusable
        } else {
            SignInFailure::Unreachable
        }
    }
}

/// Whether the provider was reached, and its certificate refused. I/O errors hide their cause.
fn is_of_certificate(error: &(dyn StdError + 'static)) -> bool {
    let hidden = error.downcast_ref::<io::Error>();
    match hidden.and_then(io::Error::get_ref) {
        Some(hidden) => is_of_certificate(hidden),
        None => matches!(
            error.downcast_ref(),
            Some(rustls::Error::InvalidCertificate(_))
        ),
    }
}

/// Sends requests.
pub(super) struct Fetcher(Option<reqwest::Client>);

impl Fetcher {
    pub(super) fn new() -> Self {
        let client = client();
        let client = client.inspect_err(|error| tracing::warn!(%error, "no provider can be asked"));
        Self(client.ok())
    }

    /// Reads a JSON document, with an access token if it needs one.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        url: &str,
        access_token: Option<&str>,
    ) -> Result<T, FetchError> {
        let request = |client: &reqwest::Client| match access_token {
            Some(token) => client.get(url).bearer_auth(token),
            None => client.get(url),
        };
        match self.send(url, request).await? {
            (OK, body) => Ok(serde_json::from_slice(&body)?),
            (status, _) => Err(FetchError::Status(status)),
        }
    }

    /// Sends a form, with the id and secret of this client unless the form has them. Returns the status
    /// and the body.
    pub(super) async fn post(
        &self,
        url: &str,
        client: Option<(&str, &str)>,
        form: String,
    ) -> Result<(u16, Vec<u8>), FetchError> {
        // The standard has the credentials in the form of a form.
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let request = |http: &reqwest::Client| {
            let request = http.post(url);
            let request = match client {
                Some((id, secret)) => request.basic_auth(encoded(id), Some(encoded(secret))),
                None => request,
            };
            let form_type = "application/x-www-form-urlencoded";
            request.header(CONTENT_TYPE, form_type).body(form)
        };
        self.send(url, request).await
    }

    async fn send(
        &self,
        url: &str,
        request: impl FnOnce(&reqwest::Client) -> RequestBuilder,
    ) -> Result<(u16, Vec<u8>), FetchError> {
        if !url.parse().is_ok_and(|uri| is_protected(&uri)) {
            return Err(FetchError::Unprotected);
        }
        let client = self.0.as_ref().ok_or(FetchError::NoClient)?;
        let request = request(client).header(ACCEPT, "application/json");
        let mut response = request.send().await?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > MAX_BYTES {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok((response.status().as_u16(), body))
    }
}

fn client() -> Result<reqwest::Client, Box<dyn std::error::Error>> {
    let tls = tls::trusting_system().or_else(|error| {
        // A provider on this machine needs no certificates.
        tracing::debug!(%error, "the operating system has no trusted certificates");
        tls::trusting_none()
    })?;
    let client = reqwest::Client::builder()
        .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .timeout(LIMIT)
        .tls_backend_preconfigured(tls)
        .build()?;
    Ok(client)
}
