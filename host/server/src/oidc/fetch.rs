//! Requests to the provider: protected, without redirects, and bounded.

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::redirect;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use wharf_config::is_protected;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The time for a whole request, during which a person waits.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of a response. Documents and keys have some KiB.
const MAX_BYTES: usize = 1 << 20;

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
    #[error("the response cannot be read")]
    Response(#[from] http::Error),
}

/// Sends requests.
pub(super) struct Fetcher(Option<reqwest::Client>);

impl Fetcher {
    pub(super) fn new() -> Self {
        let client = client();
        let client = client.inspect_err(|error| tracing::warn!(%error, "no provider can be asked"));
        Self(client.ok())
    }

    async fn fetch(&self, request: HttpRequest) -> Result<HttpResponse, FetchError> {
        if !is_protected(request.uri()) {
            return Err(FetchError::Unprotected);
        }
        let client = self.0.as_ref().ok_or(FetchError::NoClient)?;
        let mut response = client.execute(request.try_into()?).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > MAX_BYTES {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(answer.body(body)?)
    }
}

impl<'c> AsyncHttpClient<'c> for Fetcher {
    type Error = FetchError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, FetchError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.fetch(request))
    }
}

fn client() -> Result<reqwest::Client, Box<dyn std::error::Error>> {
    let provider = Arc::new(ring::default_provider());
    let tls = || {
        ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
    };
    let trusting = tls().and_then(BuilderVerifierExt::with_platform_verifier);
    let tls = match trusting {
        Ok(tls) => tls.with_no_client_auth(),
        Err(error) => {
            // A provider on this machine needs no certificates.
            tracing::debug!(%error, "the operating system has no trusted certificates");
            let none = RootCertStore::empty();
            tls()?.with_root_certificates(none).with_no_client_auth()
        }
    };
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
