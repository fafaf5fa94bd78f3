//! The activity of one connection, which its watchdog reads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Counters of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    pub(super) requests: AtomicU64,
    pub(super) running: AtomicUsize,
    pub(super) sending: AtomicUsize,
    pub(super) progress: AtomicU64,
    unread: AtomicBool,
}

impl Activity {
    /// A response body exists from now on.
    pub(super) fn body_begun(&self) {
        self.sending.fetch_add(1, Ordering::Relaxed);
    }

    /// The socket has taken a response body, or the connection has given it up.
    pub(super) fn body_sent(&self) {
        self.sending.fetch_sub(1, Ordering::Relaxed);
        self.progressed();
    }

    /// The connection takes a piece of a response body.
    pub(super) fn progressed(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// An HTTP/1 request body was given up before its end.
    pub(super) fn body_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Whether the connection must end, because its next bytes may belong to an unread body.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Whether some response is not sent completely.
    pub(super) fn is_sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed) > 0
    }
}
