//! Signs of life of a client on a WebSocket.

use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tokio::time::interval;

/// Signs of life of a client.
pub(super) struct Liveness(Mutex<Signs>);

struct Signs {
    heard: Instant,
    /// The other end does not read, so nothing is heard.
    waits: bool,
}

impl Default for Liveness {
    fn default() -> Self {
        Self(Mutex::new(Signs {
            heard: Instant::now(),
            waits: false,
        }))
    }
}

impl Liveness {
    /// The client was heard.
    pub(super) fn heard(&self) {
        self.change(|signs| signs.heard = Instant::now());
    }

    /// The client is not read from now on, or again.
    pub(super) fn waits(&self, waits: bool) {
        self.change(|signs| {
            *signs = Signs {
                heard: Instant::now(),
                waits,
            };
        });
    }

    /// Completes when the client was silent for this time.
    pub(super) async fn ends(&self, silence: Duration) {
        let mut look = interval(silence / 6);
        loop {
            look.tick().await;
            let is_over = self.change(|signs| !signs.waits && signs.heard.elapsed() >= silence);
            if is_over {
                tracing::debug!("the client of a WebSocket is silent");
                return;
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Signs) -> T) -> T {
        change(&mut self.0.lock())
    }
}
