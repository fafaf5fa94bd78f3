//! One request to the server of a bucket: signed, watched, and repeated.

use super::client::BucketClient;
use super::error::BucketError;
use super::xml::text;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use jiff::Timestamp;
use rusty_s3::signing::sign;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use wharf_domain::error::causes;
use wharf_outbound::Refused;
use wharf_outbound::reqwest::header::{CONTENT_LENGTH, HeaderMap, RANGE};
use wharf_outbound::reqwest::{self, Method, Response};

/// The most bytes of an answer that is no content.
const MAX_ANSWER: usize = 2 << 20;
/// The bytes of a body between two signs of progress.
const PIECE: usize = 64 << 10;
/// The validity of a signature. A request begins at once.
const VALID_S: u64 = 3600;

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The time in which at least a piece has to move.
    pub stall: Duration,
    /// The tries of a request.
    pub tries: u32,
    /// The first pause between tries, which doubles.
    pub pause: Duration,
    /// The time after which no new try begins.
    pub longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(60),
            tries: 8,
            pause: Duration::from_millis(500),
            longest: Duration::from_secs(300),
        }
    }
}

/// A request to a bucket.
#[derive(Clone)]
pub struct Call<'a> {
    pub method: Method,
    /// The object. The empty text is the bucket.
    pub object: &'a str,
    pub query: Vec<(&'a str, &'a str)>,
    /// The first byte of the object that is wanted.
    pub from: u64,
    pub body: Bytes,
}

impl<'a> Call<'a> {
    pub fn new(method: Method, object: &'a str) -> Self {
        Self {
            method,
            object,
            query: Vec::new(),
            from: 0,
            body: Bytes::new(),
        }
    }

    pub fn query(mut self, name: &'a str, value: &'a str) -> Self {
        self.query.push((name, value));
        // The signature needs them in order.
        self.query.sort_unstable();
        self
    }

    pub fn body(self, body: Bytes) -> Self {
        Self { body, ..self }
    }
}

/// A whole answer.
pub struct Answer {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as text.
    pub fn xml(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl BucketClient {
    /// Sends a request until it succeeds or fails for good, and returns its answer.
    pub(crate) async fn ask(&self, call: &Call<'_>) -> Result<Answer, BucketError> {
        self.repeat(|| self.ask_once(call)).await
    }

    /// Sends a request once, and returns its answer.
    pub(crate) async fn ask_once(&self, call: &Call<'_>) -> Result<Answer, BucketError> {
        let mut response = self.send(call).await?;
        let headers = response.headers().clone();
        let body = self.read(&mut response, MAX_ANSWER).await?;
        // A server can begin a success, and find out only then.
        let xml = String::from_utf8_lossy(&body);
        if call.method == Method::POST && xml.contains("<Error>") {
            return Err(self.refusal(500, &xml));
        }
        Ok(Answer { headers, body })
    }

    /// Repeats attempts that may succeed later.
    pub(crate) async fn repeat<T, F: Future<Output = Result<T, BucketError>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, BucketError> {
        let begun = Instant::now();
        let mut pause = self.patience.pause;
        let mut tries = 1;
        loop {
            let result = attempt().await;
            let is_final = result.as_ref().err().is_none_or(BucketError::is_final);
            if is_final || tries >= self.patience.tries || begun.elapsed() > self.patience.longest {
                return result;
            }
            sleep(jittered(pause)).await;
            (pause, tries) = (pause * 2, tries + 1);
        }
    }

    /// Sends a request once. The body of its success is not read yet.
    pub(crate) async fn send(&self, call: &Call<'_>) -> Result<Response, BucketError> {
        let url = sign(
            &Timestamp::now(),
            method(&call.method),
            self.bucket.object_url(call.object),
            self.keys.access_key_id.expose(),
            self.keys.secret_access_key.expose(),
            None,
            self.bucket.region(),
            VALID_S,
            call.query.iter().copied(),
            std::iter::empty(),
        );
        let request = self.http.request(call.method.clone(), url.as_str()).await;
        let mut request = request.map_err(|reason| BucketError::Address(reason.to_owned()))?;
        let moved = Arc::new(Notify::new());
        if [Method::PUT, Method::POST].contains(&call.method) {
            let body = WatchedBody {
                rest: call.body.clone(),
                moved: Arc::clone(&moved),
            };
            request = request
                .header(CONTENT_LENGTH, call.body.len())
                .body(reqwest::Body::wrap(body));
        }
        if call.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", call.from));
        }
        let sent = unless_stalled(&moved, self.patience.stall, request.send()).await;
        let mut response = sent.ok_or_else(stalled)?.map_err(|error| broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.read(&mut response, MAX_ANSWER).await;
        let body = body.unwrap_or_default();
        Err(self.refusal(status.as_u16(), &String::from_utf8_lossy(&body)))
    }

    /// Reads the rest of a body of at most `most` bytes.
    pub(crate) async fn read(
        &self,
        response: &mut Response,
        most: usize,
    ) -> Result<Bytes, BucketError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(response).await? {
            if body.len() + chunk.len() > most {
                return Err(BucketError::altered("an object is too large"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.into())
    }

    /// Reads the next piece of a body.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
    ) -> Result<Option<Bytes>, BucketError> {
        let chunk = tokio::time::timeout(self.patience.stall, response.chunk()).await;
        let chunk = chunk.map_err(|_| stalled())?;
        chunk.map_err(|error| broken(&error))
    }

    /// The error of an answer.
    fn refusal(&self, status: u16, xml: &str) -> BucketError {
        let words = |name| {
            let words = text(xml, name).unwrap_or_default();
            // A server may repeat the id of the key.
            words.replace(self.keys.access_key_id.expose(), "…")
        };
        BucketError::of_answer(status, &words("Code"), &words("Message"))
    }
}

fn method(method: &Method) -> rusty_s3::Method {
    match *method {
        Method::PUT => rusty_s3::Method::Put,
        Method::POST => rusty_s3::Method::Post,
        Method::DELETE => rusty_s3::Method::Delete,
        Method::HEAD => rusty_s3::Method::Head,
        _ => rusty_s3::Method::Get,
    }
}

/// A body that tells when a piece of it moves.
struct WatchedBody {
    rest: Bytes,
    moved: Arc<Notify>,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.moved.notify_one();
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Waits for a future as long as something moves.
async fn unless_stalled<F: Future>(
    moved: &Notify,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return Some(output),
            () = moved.notified() => {}
            () = sleep(limit) => return None,
        }
    }
}

fn stalled() -> BucketError {
    BucketError::Unreachable("it did not answer in time".to_owned())
}

/// The words for the user, which tell nothing about the network of the service.
fn broken(error: &reqwest::Error) -> BucketError {
    let words = if causes(error).any(|cause| cause.is::<Refused>()) {
        "the host has no public address"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke off"
    };
    BucketError::Unreachable(words.to_owned())
}

/// A pause or up to twice as much, so that many clients do not return at once.
pub fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    pause + pause.mul_f64(f64::from(random) / f64::from(u32::MAX))
}
