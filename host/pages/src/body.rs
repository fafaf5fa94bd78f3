//! Bodies on their way. A body is polled only when its reader has room, so a slow reader holds its sender back.
//! Trailers do not pass, since nothing would check them.

use crate::connection::Connection;
use crate::exchange::{Exchange, Held};
use crate::upstream::Lease;
use crate::wire::Wire;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a request on its way to the page.
pub(crate) struct Upload(Option<(Incoming, Arc<Exchange>)>);

impl Upload {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn new(body: Incoming, exchange: &Arc<Exchange>) -> Self {
        if body.is_end_stream() {
            return Self::none();
        }
        exchange.up.wait();
        Self(Some((body, Arc::clone(exchange))))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some((_, exchange)) = &self.0 {
            exchange.up.rest();
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some((body, exchange)) = &mut self.get_mut().0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(poll_data(body, context));
        exchange.up.touch(length(frame.as_ref()));
        if frame.is_none() {
            exchange.up.rest();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let none = SizeHint::with_exact(0);
        self.0.as_ref().map_or(none, |(body, _)| body.size_hint())
    }
}

/// The body of an answer of the gateway's own, which counts until the connection has taken it.
pub(crate) struct OwnBody {
    body: Full<Bytes>,
    wire: Arc<Wire>,
}

impl OwnBody {
    /// Closes a connection that leaves too many answers unread.
    pub(crate) fn new(body: Full<Bytes>, connection: &Connection) -> Self {
        let wire = Arc::clone(&connection.wire);
        if !wire.answer() {
            connection.closing.notify_one();
        }
        Self { body, wire }
    }
}

impl Drop for OwnBody {
    fn drop(&mut self) {
        self.wire.answered();
    }
}

impl Body for OwnBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.get_mut().body).poll_frame(context));
        // A whole body has no errors.
        Poll::Ready(frame.and_then(Result::ok).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response on its way to the visitor, with the connection that it comes from.
pub(crate) struct Download {
    body: Incoming,
    held: Held,
    lease: Option<Lease>,
    /// The visitor's connection, if it has no other body.
    wire: Option<Arc<Wire>>,
    finished: bool,
}

impl Download {
    pub(crate) fn new(body: Incoming, held: Held, lease: Lease, wire: Option<Arc<Wire>>) -> Self {
        Self {
            body,
            held,
            lease: Some(lease),
            wire,
            finished: false,
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if (self.finished || self.body.is_end_stream())
            && let Some(lease) = self.lease.take()
        {
            self.held.exchange().release();
            lease.give_back();
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let flow = &this.held.exchange().down;
        if this.wire.as_ref().is_some_and(|wire| wire.is_full(context)) {
            flow.wait();
            return Poll::Pending;
        }
        let Poll::Ready(frame) = poll_data(&mut this.body, context) else {
            flow.wait_for_sender();
            return Poll::Pending;
        };
        let bytes = length(frame.as_ref());
        flow.touch(bytes);
        flow.wait();
        if let Some(wire) = &this.wire {
            wire.hold(bytes);
        }
        this.finished = frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The bytes of a frame of data.
fn length(frame: Option<&Result<Frame<Bytes>, hyper::Error>>) -> usize {
    let data = frame.and_then(|frame| frame.as_ref().ok()?.data_ref());
    data.map_or(0, Bytes::len)
}

/// Reads the next frame of data.
fn poll_data(
    body: &mut Incoming,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(context)) {
            Some(Ok(frame)) if !frame.is_data() => {}
            other => return Poll::Ready(other),
        }
    }
}
