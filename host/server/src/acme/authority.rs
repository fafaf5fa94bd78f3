//! Requests to the authority: protected, without redirects, and bounded.

use super::order::AcmeError;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Limited};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use reqwest::redirect;
use std::pin::Pin;
use std::time::Duration;
use wharf_client::tls;

/// The time for a whole request.
const LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of a response. Certificates and orders have some KiB.
const MAX_BYTES: usize = 1 << 20;

/// The client for requests to the authority.
struct Authority(reqwest::Client);

/// Makes the client.
pub(super) fn client() -> Result<Box<dyn HttpClient>, AcmeError> {
    let tls = tls::trusting_system().map_err(|error| Error::Other(error.into()))?;
    let client = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .https_only(true)
        .timeout(LIMIT)
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| Error::Other(error.into()))?;
    Ok(Box::new(Authority(client)))
}

impl HttpClient for Authority {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let other = |error: reqwest::Error| Error::Other(error.into());
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let request = Request::from_parts(parts, body);
            let request = reqwest::Request::try_from(request).map_err(other)?;
            let response = client.execute(request).await.map_err(other)?;
            let response = http::Response::<reqwest::Body>::from(response);
            Ok(response.map(|body| Limited::new(body, MAX_BYTES)).into())
        })
    }
}
