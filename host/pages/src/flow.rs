//! The progress of bytes in one direction. A look at all exchanges reads it, so that none needs a timer.

use crate::exchange::LOOK_EVERY;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

/// No bytes are due.
const AT_REST: u8 = 0;
/// The sender has nothing to send yet, which is its right.
const SILENT: u8 = 1;
/// A side has to send or to read.
const DUE: u8 = 2;

/// The progress of one direction.
pub(crate) struct Flow {
    state: AtomicU8,
    moved: AtomicBool,
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
            moved: AtomicBool::new(true),
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
    pub(crate) fn touch(&self) {
        self.moved.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.state.load(Ordering::Relaxed) == AT_REST
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.state.load(Ordering::Relaxed) == SILENT
    }

    /// Returns the time without progress. It is called once in [`LOOK_EVERY`].
    pub(crate) fn look(&self) -> Duration {
        let quiet = if self.moved.swap(false, Ordering::Relaxed) || self.is_at_rest() {
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
