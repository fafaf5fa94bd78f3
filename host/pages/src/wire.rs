//! The bytes between hyper and the socket of a visitor. Bounds hold back a visitor that does not read, and end
//! one that sends a head without end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of bodies that a connection of HTTP/1.1 holds before its visitor reads them.
const MAX_UNSENT: usize = 64 * 1024;

/// The answers of the gateway's own that a connection leaves unread. A visitor that reads leaves none.
const MAX_ANSWERS: usize = 16;

/// The part of a head that any connection may have sent.
const SMALL_HEAD: usize = 16 * 1024;

/// The larger heads that are read at a time, of all peers and of one.
const LARGE_HEADS: usize = 256;
const LARGE_HEADS_OF_PEER: usize = 64;

/// The larger heads that are being read.
#[derive(Debug, Default)]
pub(crate) struct LargeHeads(Mutex<HashMap<IpAddr, usize>>);

/// A larger head.
#[derive(Debug)]
struct LargeHead {
    heads: Arc<LargeHeads>,
    peer: IpAddr,
}

impl LargeHeads {
    fn begin(self: &Arc<Self>, peer: IpAddr) -> Option<LargeHead> {
        let mut heads = self.0.lock();
        let of_peer = heads.get(&peer).copied().unwrap_or_default();
        let all: usize = heads.values().sum();
        if all >= LARGE_HEADS || of_peer >= LARGE_HEADS_OF_PEER {
            return None;
        }
        heads.insert(peer, of_peer + 1);
        Some(LargeHead {
            heads: Arc::clone(self),
            peer,
        })
    }
}

impl Drop for LargeHead {
    fn drop(&mut self) {
        let mut heads = self.heads.0.lock();
        if let Some(of_peer) = heads.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                heads.remove(&self.peer);
            }
        }
    }
}

/// The bytes of one connection.
#[derive(Debug)]
pub(crate) struct Wire {
    peer: IpAddr,
    /// Requests whose responses were not sent.
    running: AtomicUsize,
    /// Bytes of bodies that the socket has not taken.
    unsent: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
    /// The gateway's own answers that the socket has not taken.
    answers: AtomicUsize,
    /// Bytes that have come since the last head.
    received: AtomicUsize,
    heads: Arc<LargeHeads>,
    large: Mutex<Option<LargeHead>>,
}

impl Wire {
    pub(crate) fn new(peer: IpAddr, heads: &Arc<LargeHeads>) -> Arc<Self> {
        Arc::new(Self {
            peer,
            running: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            waiting: Mutex::new(None),
            answers: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            heads: Arc::clone(heads),
            large: Mutex::new(None),
        })
    }

    /// A head is complete.
    pub(crate) fn begin(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.received.store(0, Ordering::Relaxed);
        *self.large.lock() = None;
    }

    /// A response was sent.
    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Whether the visitor has to read before a body goes on, which is told to the task of this context.
    pub(crate) fn is_full(&self, context: &Context<'_>) -> bool {
        let is_full = || self.unsent.load(Ordering::Relaxed) >= MAX_UNSENT;
        if !is_full() {
            return false;
        }
        *self.waiting.lock() = Some(context.waker().clone());
        is_full()
    }

    /// Bytes of a body are on their way.
    pub(crate) fn hold(&self, bytes: usize) {
        self.unsent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// An answer of the gateway's own is on its way. False if too many are.
    pub(crate) fn answer(&self) -> bool {
        self.answers.fetch_add(1, Ordering::Relaxed) < MAX_ANSWERS
    }

    /// An answer of the gateway's own is gone.
    pub(crate) fn answered(&self) {
        self.answers.fetch_sub(1, Ordering::Relaxed);
    }

    fn sent(&self, bytes: usize) {
        let before = self.unsent.load(Ordering::Relaxed);
        // The rest is heads and the borders of pieces.
        let now = before.saturating_sub(bytes);
        self.unsent.store(now, Ordering::Relaxed);
        if now < MAX_UNSENT
            && let Some(waiting) = self.waiting.lock().take()
        {
            waiting.wake();
        }
    }

    fn receive(&self, bytes: usize) -> io::Result<()> {
        if self.is_busy() {
            return Ok(());
        }
        let received = self.received.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut large = self.large.lock();
        if received > SMALL_HEAD && large.is_none() {
            *large = self.heads.begin(self.peer);
            if large.is_none() {
                return Err(io::Error::other("too many large heads at a time"));
            }
        }
        Ok(())
    }
}

/// The socket of a visitor.
pub(crate) struct Wired<I> {
    pub(crate) io: I,
    pub(crate) wire: Arc<Wire>,
}

impl<I: AsyncRead + Unpin> AsyncRead for Wired<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        Poll::Ready(self.wire.receive(buffer.filled().len() - before))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Wired<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(context, bytes))?;
        self.wire.sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(context, pieces))?;
        self.wire.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGE_HEADS, LARGE_HEADS_OF_PEER, LargeHeads, MAX_UNSENT, SMALL_HEAD, Wire};
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    #[test]
    fn a_peer_has_a_share_of_the_large_heads_and_gives_it_back() {
        let heads = Arc::<LargeHeads>::default();
        let of = |peer: u8| Wire::new(IpAddr::from([192, 0, 2, peer]), &heads);
        let first: Vec<_> = (0..LARGE_HEADS_OF_PEER).map(|_| of(1)).collect();
        for wire in &first {
            wire.receive(SMALL_HEAD).unwrap();
            wire.receive(1).unwrap();
        }
        of(1).receive(SMALL_HEAD).unwrap();
        of(1).receive(SMALL_HEAD + 1).unwrap_err();
        of(2).receive(SMALL_HEAD + 1).unwrap();
        // A body is no head, and a head that is complete counts no more.
        let busy = of(1);
        busy.begin();
        busy.receive(1024 * 1024).unwrap();
        first[0].begin();
        let others: Vec<_> = (2..5)
            .flat_map(|n| (0..64).map(move |_| n))
            .map(of)
            .collect();
        for wire in others {
            wire.receive(SMALL_HEAD + 1).unwrap();
        }
        assert!(heads.0.lock().values().sum::<usize>() < LARGE_HEADS);
        drop(first);
        assert!(heads.0.lock().is_empty());
    }

    #[test]
    fn a_body_waits_for_a_visitor_that_does_not_read() {
        let wire = Wire::new([127, 0, 0, 1].into(), &Arc::default());
        let context = Context::from_waker(Waker::noop());
        wire.hold(MAX_UNSENT - 1);
        assert!(!wire.is_full(&context));
        wire.hold(1);
        assert!(wire.is_full(&context) && wire.waiting.lock().is_some());
        wire.sent(1);
        assert!(!wire.is_full(&context) && wire.waiting.lock().is_none());
        // The head of the response was sent too.
        wire.sent(2 * MAX_UNSENT);
        assert_eq!(wire.unsent.load(super::Ordering::Relaxed), 0);
    }
}
