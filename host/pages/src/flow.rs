//! The progress of bytes in one direction. A look at all exchanges reads it, so that none needs a timer.

use crate::exchange::LOOK_EVERY;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// No bytes are due.
const AT_REST: u8 = 0;
/// The sender has nothing to send yet, which is its right.
const SILENT: u8 = 1;
/// A side has to send or to read.
const DUE: u8 = 2;

/// A direction that has moved less lately is slow. The looks before count half as much each time.
pub(crate) const SLOW: usize = 8 * 1024;
const MOST_RECENT: usize = 4 * SLOW;

/// The progress of one direction.
pub(crate) struct Flow {
    state: AtomicU8,
    /// Bytes since the last look, and a further one for a sign of life.
    moved: AtomicUsize,
    /// Bytes of the last looks.
    recent: AtomicUsize,
    /// Looks without progress.
    quiet: AtomicU32,
}

impl Flow {
    pub(crate) fn at_rest() -> Self {
        Self::new(AT_REST)
    }

    pub(crate) fn silent() -> Self {
        Self::new(SILENT)
    }

    fn new(state: u8) -> Self {
        Self {
            state: AtomicU8::new(state),
            moved: AtomicUsize::new(1),
            recent: AtomicUsize::new(MOST_RECENT),
            quiet: AtomicU32::new(0),
        }
    }

    /// The sender waits for itself.
    pub(crate) fn wait_for_sender(&self) {
        self.set(SILENT);
    }

    /// Bytes or their readers are due.
    pub(crate) fn wait(&self) {
        self.set(DUE);
    }

    /// All bytes have passed.
    pub(crate) fn rest(&self) {
        self.set(AT_REST);
    }

    /// Bytes have passed.
    pub(crate) fn touch(&self, bytes: usize) {
        self.moved
            .fetch_add(bytes.saturating_add(1), Ordering::Relaxed);
    }

    /// Whether bytes are due, and few have passed lately. They are held meanwhile.
    pub(crate) fn is_slow(&self) -> bool {
        let is_due = self.state.load(Ordering::Relaxed) == DUE;
        is_due && self.recent.load(Ordering::Relaxed) < SLOW
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.state.load(Ordering::Relaxed) == AT_REST
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.state.load(Ordering::Relaxed) == SILENT
    }

    /// Returns the time without progress. It is called once in [`LOOK_EVERY`].
    pub(crate) fn look(&self) -> Duration {
        let moved = self.moved.swap(0, Ordering::Relaxed);
        let before = self.recent.load(Ordering::Relaxed);
        let recent = (before / 2).saturating_add(moved).min(MOST_RECENT);
        self.recent.store(recent, Ordering::Relaxed);
        let quiet = if moved > 0 || self.is_at_rest() {
            0
        } else {
            self.quiet.load(Ordering::Relaxed).saturating_add(1)
        };
        self.quiet.store(quiet, Ordering::Relaxed);
        LOOK_EVERY * quiet
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }
}
