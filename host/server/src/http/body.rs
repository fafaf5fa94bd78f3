//! Request bodies: declared as JSON, read within bounds of size and time, drained if the endpoint takes none.

use super::activity::Activity;
use super::respond::HttpError;
use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue};
use http::{Request, Version};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The size limit of a request body in bytes, far above any sensible request.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// The size limit of a request body under `/auth/` in bytes. The largest has a passkey with certificates.
pub(super) const MAX_AUTH_BYTES: usize = 16 * 1024;

/// The size limit of a drained body in bytes.
const MAX_DRAINED: usize = 1024 * 1024;

/// The time limit for draining a body.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The time in which a body that no endpoint takes is looked at.
const ARRIVAL: Duration = Duration::from_millis(50);

/// Refuses a body that is not declared, once, as JSON without a content coding.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let essence = types
        .next()
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    let coded = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let is_json = essence.is_some_and(|e| e.eq_ignore_ascii_case("application/json"));
    if !is_json || types.next().is_some() {
        return Err(HttpError::MediaType);
    }
    if coded {
        Err(HttpError::ContentCoding)
    } else {
        Ok(())
    }
}

/// Refuses a body whose declared size is above the limit.
fn check_size(body: &Body, most: usize) -> Result<(), HttpError> {
    if body.size_hint().lower() > most as u64 {
        Err(HttpError::TooLarge(most))
    } else {
        Ok(())
    }
}

/// Discards the body of a request to an endpoint that takes none. A part that has arrived, or arrives
/// within [`ARRIVAL`], must be valid; the response does not wait for more.
pub(super) async fn ignore(body: Body, awaits_continue: bool) -> Result<(), HttpError> {
    check_size(&body, MAX_BYTES)?;
    if body.is_end_stream() || awaits_continue {
        return Ok(());
    }
    let mut body = Limited::new(body, MAX_BYTES);
    let discard = async {
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| broken(&*error, MAX_BYTES))?;
        }
        Ok(())
    };
    timeout(ARRIVAL, discard).await.unwrap_or(Ok(()))
}

/// Whether the client of an HTTP/1.1 request sends its body only after a `100 Continue`.
pub(super) fn awaits_continue(version: Version, headers: &HeaderMap) -> bool {
    let expect = headers.get(EXPECT).map(HeaderValue::as_bytes);
    version == Version::HTTP_11
        && expect.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

fn broken(error: &(dyn std::error::Error + 'static), most: usize) -> HttpError {
    if error.is::<LengthLimitError>() {
        HttpError::TooLarge(most)
    } else {
        HttpError::BodyBroken
    }
}

/// Reads a whole body of at most this number of bytes into one buffer. `hold` is asked for the memory as
/// the buffer grows.
pub(super) async fn read(
    body: Body,
    most: usize,
    limit: Duration,
    mut hold: impl FnMut(u64) -> bool,
) -> Result<Bytes, HttpError> {
    check_size(&body, most)?;
    let mut body = Limited::new(body, most);
    let collected = async {
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| broken(&*error, most))?;
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            let before = whole.capacity();
            whole.reserve(piece.len());
            let grown = whole.capacity() - before;
            if grown > 0 && !hold(grown as u64) {
                return Err(HttpError::Busy);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    };
    let collected = timeout(limit, collected).await;
    collected.unwrap_or(Err(HttpError::BodyTimeout))
}

/// A body as it arrives. On HTTP/1.1 a body that is dropped unread is drained, within bounds, so that
/// its sender sees the response instead of a broken connection. HTTP/2 resets the one stream.
pub(super) struct RequestBody<B: hyper::body::Body<Data = Bytes> + Unpin + Send + 'static> {
    /// Present until it has ended or is drained.
    body: Option<B>,
    http1: bool,
    /// The client sends the body only after a `100 Continue`, which the first read causes.
    awaits_continue: bool,
    activity: Arc<Activity>,
}

impl RequestBody<Incoming> {
    /// Takes over the body of a request.
    pub(super) fn wrap(request: Request<Incoming>, activity: &Arc<Activity>) -> Request<Self> {
        let http1 = request.version() < Version::HTTP_2;
        let awaits_continue = awaits_continue(request.version(), request.headers());
        request.map(|body| Self::new(body, http1, awaits_continue, activity))
    }
}

impl<B: hyper::body::Body<Data = Bytes> + Unpin + Send + 'static> RequestBody<B> {
    fn new(body: B, http1: bool, awaits_continue: bool, activity: &Arc<Activity>) -> Self {
        Self {
            body: (!body.is_end_stream()).then_some(body),
            http1,
            awaits_continue,
            activity: Arc::clone(activity),
        }
    }
}

impl<B: hyper::body::Body<Data = Bytes> + Unpin + Send + 'static> hyper::body::Body
    for RequestBody<B>
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        this.awaits_continue = false;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            this.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        self.body.as_ref().map_or_else(none, B::size_hint)
    }
}

impl<B: hyper::body::Body<Data = Bytes> + Unpin + Send + 'static> Drop for RequestBody<B> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && self.http1
            && !self.awaits_continue
            && let Ok(runtime) = Handle::try_current()
        {
            self.activity.body_unread();
            runtime.spawn(async { drop(timeout(DRAIN_TIMEOUT, drain(body)).await) });
        }
    }
}

/// Reads and discards a body up to its limit; the connection ends with what is left.
async fn drain<B: hyper::body::Body<Data = Bytes> + Unpin>(mut body: B) {
    let mut drained = 0;
    while drained < MAX_DRAINED
        && let Some(Ok(frame)) = body.frame().await
    {
        drained += frame.data_ref().map_or(0, Bytes::len);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, MAX_DRAINED, RequestBody, read, require_json};
    use crate::http::respond::HttpError;
    use axum::body::Body;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_millis(50);

    /// A body of equal pieces, then the end or silence. `taken` counts the pieces read.
    struct Pieces {
        count: usize,
        bytes: usize,
        ends: bool,
        taken: Arc<AtomicUsize>,
    }

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match (self.taken.load(Ordering::SeqCst) < self.count, self.ends) {
                (false, true) => Poll::Ready(None),
                (false, false) => Poll::Pending,
                _ => {
                    self.taken.fetch_add(1, Ordering::SeqCst);
                    Poll::Ready(Some(Ok(Frame::data(vec![b'x'; self.bytes].into()))))
                }
            }
        }
    }

    fn pieces(count: usize, bytes: usize, ends: bool) -> (Pieces, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let pieces = Pieces {
            count,
            bytes,
            ends,
            taken: Arc::clone(&taken),
        };
        (pieces, taken)
    }

    async fn whole(body: Body) -> Result<Bytes, HttpError> {
        read(body, MAX_BYTES, LIMIT, |_| true).await
    }

    async fn read_pieces(count: usize, bytes: usize, ends: bool) -> Result<Bytes, HttpError> {
        whole(Body::new(pieces(count, bytes, ends).0)).await
    }

    #[tokio::test]
    async fn whole_bodies() {
        assert_eq!(whole(Body::from("abc")).await.unwrap(), "abc");
        assert!(whole(Body::empty()).await.unwrap().is_empty());
        let in_pieces = read_pieces(64, 1024, true).await.unwrap();
        assert_eq!(in_pieces.len(), MAX_BYTES);
    }

    #[tokio::test]
    async fn the_pieces_of_a_body_cost_at_most_twice_its_length() {
        let body = |count| Body::new(pieces(count, 1, true).0);
        let mut held = 0;
        let in_pieces = read(body(MAX_BYTES), MAX_BYTES, LIMIT * 100, |bytes| {
            held += bytes;
            true
        });
        assert_eq!(in_pieces.await.unwrap().len(), MAX_BYTES);
        assert!(held <= 2 * MAX_BYTES as u64, "{held}");
        let refused = read(body(10), MAX_BYTES, LIMIT, |_| false).await;
        assert_eq!(refused, Err(HttpError::Busy));
    }

    #[tokio::test]
    async fn too_long_and_too_slow() {
        let declared = Body::from(vec![0; MAX_BYTES + 1]);
        assert_eq!(whole(declared).await, Err(HttpError::TooLarge(MAX_BYTES)));
        let undeclared = read_pieces(66, 1024, true).await;
        assert_eq!(undeclared, Err(HttpError::TooLarge(MAX_BYTES)));
        let silent = read_pieces(1, 10, false).await;
        assert_eq!(silent, Err(HttpError::BodyTimeout));
    }

    #[tokio::test]
    async fn what_is_dropped_unread_is_drained_on_http1_only() {
        let drained = async |http1, awaits_continue, count| {
            let (pieces, taken) = pieces(count, 65_536, true);
            let activity = Arc::default();
            drop(RequestBody::new(pieces, http1, awaits_continue, &activity));
            assert_eq!(activity.has_unread_body(), http1 && !awaits_continue);
            tokio::time::sleep(LIMIT).await;
            taken.load(Ordering::SeqCst)
        };
        assert_eq!(drained(true, false, 3).await, 3);
        let most = MAX_DRAINED / 65_536;
        assert_eq!(drained(true, false, usize::MAX).await, most);
        assert_eq!(drained(false, false, 3).await, 0);
        assert_eq!(drained(true, true, 3).await, 0);
    }

    fn json(pairs: &[(&str, &str)]) -> Result<(), HttpError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        require_json(&headers)
    }

    #[test]
    fn json_with_or_without_parameters() {
        let typed = |value| ("content-type", value);
        let coded = |value| ("content-encoding", value);
        for right in [
            &[typed("application/json")][..],
            &[typed("Application/JSON ; charset=utf-8")],
            &[typed("application/json"), coded("identity")],
        ] {
            assert_eq!(json(right), Ok(()), "{right:?}");
        }
        for wrong in [
            &[][..],
            &[typed("text/json")],
            &[typed("application/json-patch+json")],
            &[typed("application/json"), typed("application/json")],
        ] {
            assert_eq!(json(wrong), Err(HttpError::MediaType), "{wrong:?}");
        }
        let gzipped = [typed("application/json"), coded("gzip")];
        assert_eq!(json(&gzipped), Err(HttpError::ContentCoding));
    }
}
