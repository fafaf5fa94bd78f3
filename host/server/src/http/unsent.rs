//! Response bodies on their way to the client. Their bytes are counted until the socket has taken them.
//! So clients that do not read cost a bounded amount of memory.

use super::activity::Activity;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// The largest piece given to hyper at once, in bytes. The progress of a long body shows in steps of
/// this size.
const CHUNK: usize = 64 * 1024;

/// Marks a response whose bytes are part of the program, so that sending it costs no memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Static;

/// Marks a response whose body is many frames, over any time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streamed;

/// The unsent bytes of all responses.
#[derive(Debug)]
pub(super) struct Unsent {
    bytes: AtomicU64,
    limit: u64,
}

impl Unsent {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            limit,
        })
    }

    /// Whether clients have to read before further requests are served.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.limit
    }
}

/// Watches one body until it is sent or given up.
struct Sending {
    activity: Arc<Activity>,
    body: u64,
    _counted: Count,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.activity.body_sent(self.body);
    }
}

/// Counts bytes until they are sent or given up.
struct Count {
    unsent: Arc<Unsent>,
    bytes: u64,
}

impl Count {
    fn new(unsent: &Arc<Unsent>, bytes: u64) -> Self {
        unsent.bytes.fetch_add(bytes, Ordering::Relaxed);
        Self {
            unsent: Arc::clone(unsent),
            bytes,
        }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.unsent.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that are counted until hyper drops them, which it does once the socket has taken them.
struct Counted {
    bytes: Bytes,
    _sending: Option<Sending>,
    _counted: Option<Count>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A response body that is counted in [`Unsent`] and handed out in pieces.
pub(super) struct UnsentBody {
    body: Body,
    rest: Bytes,
    activity: Arc<Activity>,
    number: u64,
    sending: Option<Sending>,
    /// Set for a body of many frames; each frame is counted by itself.
    streamed: Option<Arc<Unsent>>,
}

impl UnsentBody {
    /// Counts the body of a response on a connection.
    pub(super) fn track(
        response: axum::response::Response,
        activity: &Arc<Activity>,
        unsent: &Arc<Unsent>,
    ) -> http::Response<Self> {
        let bytes = match response.extensions().get::<Static>() {
            Some(Static) => 0,
            None => response.body().size_hint().lower(),
        };
        let sending = (!response.body().is_end_stream()).then(|| Sending {
            activity: Arc::clone(activity),
            body: activity.body_begun(),
            _counted: Count::new(unsent, bytes),
        });
        let streamed = response.extensions().get::<Streamed>();
        let streamed = streamed.map(|Streamed| Arc::clone(unsent));
        response.map(|body| Self {
            body,
            rest: Bytes::new(),
            activity: Arc::clone(activity),
            number: sending.as_ref().map_or(0, |sending| sending.body),
            sending,
            streamed,
        })
    }
}

impl hyper::body::Body for UnsentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(context)?) else {
                return Poll::Ready(None);
            };
            match frame.into_data() {
                Ok(bytes) => {
                    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    let streamed = this.streamed.as_ref();
                    this.rest = Bytes::from_owner(Counted {
                        bytes,
                        // A body that is not streamed is one frame.
                        _sending: this.sending.take_if(|_| streamed.is_none()),
                        _counted: streamed.map(|unsent| Count::new(unsent, length)),
                    });
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        this.activity.body_progressed(this.number);
        let piece = this.rest.split_to(this.rest.len().min(CHUNK));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        match self.body.size_hint().exact() {
            Some(bytes) => SizeHint::with_exact(bytes.saturating_add(rest)),
            None => SizeHint::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Static, Unsent, UnsentBody};
    use crate::http::activity::Activity;
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use hyper::body::Body as _;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_body_counts_until_its_last_piece_is_dropped() {
        let (activity, unsent) = (Arc::<Activity>::default(), Unsent::new(100_000));
        let long = "x".repeat(2 * CHUNK + 1);
        let response = UnsentBody::track(long.clone().into_response(), &activity, &unsent);
        assert!(unsent.is_full() && !activity.bodies().is_empty());
        let mut body = response.into_body();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
            let sent: usize = pieces.iter().map(|piece| piece.len()).sum();
            assert_eq!(body.size_hint().exact(), Some((long.len() - sent) as u64));
        }
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!(pieces.concat(), long.as_bytes());
        assert_eq!(pieces.len(), 3);
        pieces.truncate(1);
        assert!(unsent.is_full() && !activity.bodies().is_empty());
        pieces.clear();
        assert!(!unsent.is_full() && activity.bodies().is_empty());
    }

    #[tokio::test]
    async fn static_bytes_and_empty_bodies_cost_nothing() {
        let (activity, unsent) = (Arc::<Activity>::default(), Unsent::new(1));
        let mut response = "static".into_response();
        response.extensions_mut().insert(Static);
        let response = UnsentBody::track(response, &activity, &unsent);
        assert!(!unsent.is_full() && !activity.bodies().is_empty());
        drop(response);
        let _empty = UnsentBody::track(().into_response(), &activity, &unsent);
        assert!(activity.bodies().is_empty());
    }

    #[tokio::test]
    async fn a_streamed_body_is_watched_to_its_end_and_counts_what_is_not_sent() {
        let (activity, unsent) = (Arc::<Activity>::default(), Unsent::new(3));
        let frames = ["one", "two"].map(Ok::<_, std::convert::Infallible>);
        let body = axum::body::Body::from_stream(futures_util::stream::iter(frames));
        let mut response = axum::response::Response::new(body);
        response.extensions_mut().insert(super::Streamed);
        let mut body = UnsentBody::track(response, &activity, &unsent).into_body();
        for _ in 0..2 {
            assert!(!unsent.is_full() && !activity.bodies().is_empty());
            let frame = body.frame().await.unwrap().unwrap();
            assert!(unsent.is_full());
            drop(frame);
        }
        assert!(body.frame().await.is_none());
        assert!(!activity.bodies().is_empty());
        drop(body);
        assert!(activity.bodies().is_empty());
    }
}
