//! The activity of one connection: its watchdog and the accept loop read it.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counters and flags of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Address of the client.
    pub(super) peer: Option<IpAddr>,
    pub(super) requests: AtomicU64,
    pub(super) running: AtomicUsize,
    /// Bytes of responses that the socket has not taken.
    pub(super) unsent: AtomicU64,
    sending: Mutex<SendingBody>,
    unread: AtomicBool,
    lingers: AtomicBool,
    authenticated: AtomicBool,
    evicted: Notify,
    upgraded: AtomicBool,
    upgrade_ended: Notify,
}

/// The connection serves another protocol than HTTP until this is dropped.
#[derive(Debug)]
pub(super) struct Upgraded(Arc<Activity>);

impl Drop for Upgraded {
    fn drop(&mut self) {
        self.0.upgraded.store(false, Ordering::Release);
        self.0.upgrade_ended.notify_one();
    }
}

/// The response bodies that are not sent completely.
#[derive(Debug, Default)]
struct SendingBody {
    bodies: Vec<BodyProgress>,
    next: u64,
}

/// The number of pieces that the connection has taken of a response body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyProgress {
    pub(super) body: u64,
    pub(super) pieces: u64,
}

impl Activity {
    /// The activity of a new connection.
    pub(super) fn of(peer: Option<IpAddr>) -> Self {
        Self {
            peer,
            ..Self::default()
        }
    }

    /// A response body exists from now on. Returns its number.
    pub(super) fn body_begun(&self) -> u64 {
        let mut sending = self.sending.lock();
        let body = sending.next;
        sending.next += 1;
        sending.bodies.push(BodyProgress { body, pieces: 0 });
        body
    }

    /// The socket has taken a response body, or the connection has given it up.
    pub(super) fn body_sent(&self, body: u64) {
        self.sending
            .lock()
            .bodies
            .retain(|progress| progress.body != body);
    }

    /// The connection takes a piece of a response body.
    pub(super) fn body_progressed(&self, body: u64) {
        let mut sending = self.sending.lock();
        let found = sending.bodies.iter_mut().find(|b| b.body == body);
        if let Some(progress) = found {
            progress.pieces += 1;
        }
    }

    /// The response bodies that are not sent completely.
    pub(super) fn bodies(&self) -> Vec<BodyProgress> {
        self.sending.lock().bodies.clone()
    }

    /// An HTTP/1 request body was given up before its end.
    pub(super) fn body_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Whether the connection must end, because its next bytes may belong to an unread body.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// The client sends bytes that are not read, and has to learn why.
    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    /// Whether the connection reads on after its last response.
    pub(super) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    /// A request on this connection had a valid key.
    pub(super) fn authenticate(&self) {
        self.authenticated.store(true, Ordering::Relaxed);
    }

    /// Whether some request on this connection had a valid key.
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Ends the connection in favour of another one.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Completes when the connection has to end.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The connection is about to leave HTTP.
    pub(super) fn upgrade(self: &Arc<Self>) -> Upgraded {
        self.upgraded.store(true, Ordering::Release);
        Upgraded(Arc::clone(self))
    }

    /// Completes when the connection serves no other protocol. It keeps its place until then.
    pub(super) async fn upgrade_ended(&self) {
        while self.upgraded.load(Ordering::Acquire) {
            self.upgrade_ended.notified().await;
        }
    }
}
