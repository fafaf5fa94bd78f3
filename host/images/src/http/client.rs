//! The client. One connection per request is fast enough on one machine.

use super::{Body, Endpoint, Request, Response};
use anyhow::{Context, Result, anyhow};
use reqwest::header::{CONTENT_TYPE, HOST, HeaderValue};
use std::time::Duration;
use tokio_util::io::ReaderStream;

/// Bytes read from a file at a time.
const CHUNK: usize = 256 * 1024;
/// The content type of an archive.
const TAR: &str = "application/x-tar";

/// Sends requests to one [`Endpoint`].
#[derive(Debug, Clone)]
pub struct HttpClient {
    endpoint: Endpoint,
}

impl HttpClient {
    /// A client of `endpoint`; each request connects.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The endpoint of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and reads the whole response, whatever its status.
    pub fn send(&self, request: Request<'_>) -> Result<Response> {
        let mut body = Vec::new();
        let status = self.stream(request, |chunk| {
            body.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(Response { status, body })
    }

    /// Sends a `GET` and returns the JSON of its response; fails unless the status is 2xx.
    pub fn get(&self, path: &str) -> Result<serde_json::Value> {
        let response = self.send(Request::new("GET", path))?;
        response.ok().with_context(|| format!("GET {path}"))?.json()
    }

    /// Sends a request, passes each chunk of the response to `each`, and returns the status.
    pub fn stream(
        &self,
        request: Request<'_>,
        each: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<u16> {
        let what = format!("{} {} at {}", request.method, request.path, self.endpoint);
        let limit = request.timeout;
        let exchange = block_on(|| async {
            let exchange = exchange(&self.endpoint, request, each);
            within(limit, "complete response", exchange).await
        });
        exchange.context(what)
    }
}

/// Runs `work` to its end, on a thread of its own, because the caller may be inside a runtime.
pub(crate) fn block_on<T: Send, W: Future<Output = Result<T>>>(
    work: impl FnOnce() -> W + Send,
) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(work())
        });
        let joined = thread.join();
        joined.unwrap_or_else(|_| Err(anyhow!("the exchange panicked")))
    })
}

async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let done = tokio::time::timeout(limit, work).await;
    done.map_err(|_| anyhow!("no {what} within {limit:?}"))?
}

async fn exchange(
    endpoint: &Endpoint,
    request: Request<'_>,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u16> {
    let client = endpoint.client().await?;
    let (quiet, limit) = (request.quiet, request.timeout);
    let mut message = client
        .request(request.method.parse()?, endpoint.url(request.path))
        .header(HOST, endpoint.authority());
    if let Some((name, value)) = request.header {
        let mut value = HeaderValue::try_from(value)?;
        value.set_sensitive(true);
        message = message.header(name, value);
    }
    if let Some(key) = request.key {
        message = message.bearer_auth(key);
    }
    message = match request.body {
        Body::Empty => message,
        Body::Json(value) => message
            .header(CONTENT_TYPE, "application/json")
            .body(value.to_string()),
        Body::Tar(bytes) => message.header(CONTENT_TYPE, TAR).body(bytes),
        Body::TarFile(path) => {
            let file = tokio::fs::File::open(path).await?;
            let pieces = ReaderStream::with_capacity(file, CHUNK);
            let body = reqwest::Body::wrap_stream(pieces);
            message.header(CONTENT_TYPE, TAR).body(body)
        }
    };
    let (first, next) = quiet.map_or((limit, limit), |quiet| (quiet.first, quiet.next));
    let begin = async {
        let mut response = message.send().await?;
        let chunk = response.chunk().await?;
        Ok((response, chunk))
    };
    let (mut response, mut chunk) = within(first, "answer", begin).await?;
    while let Some(content) = chunk {
        each(&content)?;
        chunk = within(next, "further answer", async {
            Ok(response.chunk().await?)
        })
        .await?;
    }
    Ok(response.status().as_u16())
}
