//! Response bodies on their way to the client. Their bytes are counted until the socket has taken them.
//! So clients that do not read cost a bounded amount of memory.

use super::access_log::X_REQUEST_ID;
use super::activity::Activity;
use super::budget::{Budget, BudgetBounds, BudgetOwner, Hold};
use super::client::{RequestClient, client};
use super::respond::{HttpError, Response};
use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::{Extensions, Request};
use hyper::body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use wharf_domain::ids::UserId;

/// The largest piece given to hyper at once, in bytes. The progress of a long body shows in steps of
/// this size.
const CHUNK: usize = 64 * 1024;

/// Marks a response whose bytes are part of the program, so that sending it costs no memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Static;

/// Marks a response whose body is many frames, over any time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streamed;

/// The part of the bound for one connection, a quarter of the share of a user.
const CONNECTION: u64 = 32;

/// A connection with fewer unsent bytes gets a response even if the share of its owner is full.
const FEW: u64 = 16 * 1024;

/// The memory in bytes of a response without its body.
const RESPONSE: u64 = 1024;

/// The unsent bytes of all responses, with a share for each user, for each network of clients without a
/// key, and for each connection. So only the client that does not read is refused.
#[derive(Debug)]
pub(super) struct Unsent {
    memory: Arc<Budget>,
    of_connection: u64,
}

impl Unsent {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            memory: Budget::new(BudgetBounds::of_memory(limit)),
            of_connection: limit / CONNECTION,
        })
    }

    /// Whether an owner has to read before further requests are served, on all its connections or on
    /// this one.
    pub(super) fn is_full(&self, owner: BudgetOwner, connection: Option<&Activity>) -> bool {
        connection.is_some_and(|connection| self.is_full_on(connection))
            || self.memory.is_full(owner)
    }

    fn is_full_on(&self, connection: &Activity) -> bool {
        connection.unsent.load(Ordering::Relaxed) >= self.of_connection
    }
}

/// The connection of a request, unless a proxy shares it among clients.
pub(super) fn own_connection(extensions: &Extensions) -> Option<Arc<Activity>> {
    let is_forwarded = client(extensions).is_some_and(|client| client.is_forwarded);
    let connection = extensions.get::<Arc<Activity>>().cloned();
    connection.filter(|_| !is_forwarded)
}

/// The request that a response belongs to.
pub(super) struct RequestFacts {
    client: Option<RequestClient>,
    /// The connection, if it has a share of its own.
    own: Option<Arc<Activity>>,
    is_safe: bool,
}

impl RequestFacts {
    pub(super) fn new<B>(request: &Request<B>) -> Self {
        Self {
            client: client(request.extensions()),
            own: own_connection(request.extensions()),
            is_safe: request.method().is_safe(),
        }
    }
}

/// The share of an owner is full, with its part for refusals. The stream or the connection ends without a
/// response, since each would need memory.
#[derive(Debug, thiserror::Error)]
#[error("the client does not read its responses")]
pub(super) struct Unread;

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
    _held: Hold,
    activity: Arc<Activity>,
    bytes: u64,
}

impl Count {
    fn new(held: Hold, activity: &Arc<Activity>, bytes: u64) -> Self {
        activity.unsent.fetch_add(bytes, Ordering::Relaxed);
        Self {
            _held: held,
            activity: Arc::clone(activity),
            bytes,
        }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.activity
            .unsent
            .fetch_sub(self.bytes, Ordering::Relaxed);
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
    streamed: Option<(Arc<Unsent>, BudgetOwner)>,
}

impl UnsentBody {
    /// Counts the body of a response on a connection. If the share of its user is full, a refusal takes
    /// the place of the response, unless the request has changed something. Refusals have a bound too.
    pub(super) fn track(
        mut response: Response,
        asked: &RequestFacts,
        activity: &Arc<Activity>,
        unsent: &Arc<Unsent>,
    ) -> Result<http::Response<Self>, Unread> {
        let user = response.extensions().get::<UserId>().copied();
        let owner = BudgetOwner::new(user, asked.client);
        let is_success = response.status().is_success();
        let is_done = is_success && !asked.is_safe;
        let is_read = user.is_some() && is_success && !is_done;
        if is_read && unsent.is_full(owner, asked.own.as_deref()) {
            let id = response.headers_mut().remove(X_REQUEST_ID);
            response = HttpError::Busy.into_response();
            if let Some(id) = id {
                response.headers_mut().insert(X_REQUEST_ID, id);
            }
        }
        if response.body().is_end_stream() {
            return Ok(Self::wrap(response, activity, None, None));
        }
        let bytes = match response.extensions().get::<Static>() {
            Some(Static) => RESPONSE,
            None => RESPONSE.saturating_add(response.body().size_hint().lower()),
        };
        let held = if is_done || activity.unsent.load(Ordering::Relaxed) < FEW {
            unsent.memory.hold_anyway(owner, bytes)
        } else {
            unsent.memory.hold_refusal(owner, bytes).ok_or(Unread)?
        };
        let sending = Sending {
            activity: Arc::clone(activity),
            body: activity.body_begun(),
            _counted: Count::new(held, activity, bytes),
        };
        let streamed = response.extensions().get::<Streamed>();
        let streamed = streamed.map(|Streamed| (Arc::clone(unsent), owner));
        Ok(Self::wrap(response, activity, Some(sending), streamed))
    }

    fn wrap(
        response: Response,
        activity: &Arc<Activity>,
        sending: Option<Sending>,
        streamed: Option<(Arc<Unsent>, BudgetOwner)>,
    ) -> http::Response<Self> {
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
                        _counted: streamed.map(|(unsent, owner)| {
                            let held = unsent.memory.hold_anyway(*owner, length);
                            Count::new(held, &this.activity, length)
                        }),
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
    use super::{CHUNK, RESPONSE, RequestFacts, Static, Unsent, UnsentBody};
    use crate::http::activity::Activity;
    use crate::http::budget::BudgetOwner;
    use crate::http::respond::Response;
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use hyper::body::Body as _;
    use std::sync::Arc;
    use wharf_domain::ids::UserId;

    /// The part of the bound for a client without a key.
    const SHARE: u64 = 64;

    fn track(
        response: Response,
        activity: &Arc<Activity>,
        unsent: &Arc<Unsent>,
    ) -> Option<http::Response<UnsentBody>> {
        let asked = RequestFacts {
            client: None,
            own: Some(Arc::clone(activity)),
            is_safe: true,
        };
        UnsentBody::track(response, &asked, activity, unsent).ok()
    }

    fn is_full(unsent: &Unsent) -> bool {
        unsent.is_full(BudgetOwner::new(None, None), None)
    }

    #[tokio::test]
    async fn a_body_counts_until_its_last_piece_is_dropped() {
        let (activity, unsent) = (Arc::<Activity>::default(), Unsent::new(100_000));
        let long = "x".repeat(2 * CHUNK + 1);
        let response = track(long.clone().into_response(), &activity, &unsent).unwrap();
        assert!(is_full(&unsent) && !activity.bodies().is_empty());
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
        assert!(is_full(&unsent) && !activity.bodies().is_empty());
        pieces.clear();
        assert!(!is_full(&unsent) && activity.bodies().is_empty());
    }

    #[tokio::test]
    async fn static_bytes_and_empty_bodies_cost_no_more_than_their_responses() {
        let (activity, unsent) = (
            Arc::<Activity>::default(),
            Unsent::new(2 * SHARE * RESPONSE),
        );
        let mut response = "static".into_response();
        response.extensions_mut().insert(Static);
        let response = track(response, &activity, &unsent);
        assert!(!is_full(&unsent) && !activity.bodies().is_empty());
        drop(response);
        let _empty = track(().into_response(), &activity, &unsent);
        assert!(activity.bodies().is_empty());
    }

    #[tokio::test]
    async fn a_streamed_body_is_watched_to_its_end_and_counts_what_is_not_sent() {
        let (activity, unsent) = (
            Arc::<Activity>::default(),
            Unsent::new(SHARE * (RESPONSE + 3)),
        );
        let frames = ["one", "two"].map(Ok::<_, std::convert::Infallible>);
        let body = axum::body::Body::from_stream(futures_util::stream::iter(frames));
        let mut response = axum::response::Response::new(body);
        response.extensions_mut().insert(super::Streamed);
        let mut body = track(response, &activity, &unsent).unwrap().into_body();
        for _ in 0..2 {
            assert!(!is_full(&unsent) && !activity.bodies().is_empty());
            let frame = body.frame().await.unwrap().unwrap();
            assert!(is_full(&unsent));
            drop(frame);
        }
        assert!(body.frame().await.is_none());
        assert!(!activity.bodies().is_empty());
        drop(body);
        assert!(activity.bodies().is_empty());
    }

    #[tokio::test]
    async fn a_full_share_refuses_further_responses_and_then_ends_streams() {
        let (activity, unsent) = (
            Arc::<Activity>::default(),
            Unsent::new(SHARE * RESPONSE * 10),
        );
        let of_stranger = |_| track("a".into_response(), &activity, &unsent);
        // The share has ten responses and two refusals, and the connection gets a few anyway.
        let held: Vec<_> = (0..20).map_while(of_stranger).collect();
        assert_eq!(held.len(), 16);
        drop(held);
        let of_user = |_| {
            let mut response = "x".repeat(10_000).into_response();
            response.extensions_mut().insert(UserId(1));
            track(response, &activity, &unsent).unwrap()
        };
        // A connection has a thirty-second, which two lists exceed.
        let held = [1, 2, 3].map(of_user);
        assert_eq!(
            held.each_ref().map(|held| held.status().as_u16()),
            [200, 200, 503]
        );
        drop(held);
        assert_eq!(of_user(4).status(), 200);
    }
}
