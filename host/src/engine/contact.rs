//! Whether contact with an engine was ever lost. An engine that restarts ends all connections to it,
//! however quickly it is back; one that only tidies up ends some that are not in use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The connections to one engine.
#[derive(Debug, Default)]
pub struct Contact {
    open: Mutex<usize>,
    interruptions: AtomicU64,
}

/// One connection, from when it is made until it ends.
#[derive(Debug)]
pub struct Line {
    contact: Arc<Contact>,
    open: bool,
}

impl Contact {
    /// How often the last open connection was ended by the engine.
    pub fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::SeqCst)
    }

    /// A connection was made.
    pub fn line(self: &Arc<Self>) -> Line {
        self.count(|open| open.saturating_add(1));
        Line {
            contact: Arc::clone(self),
            open: true,
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) -> usize {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = change(*open);
        *open
    }
}

impl Line {
    /// The engine ended it, in order or not.
    pub fn ended_by_peer(&mut self) {
        if self.close() == Some(0) {
            self.contact.interruptions.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How many others are open, if this one was.
    fn close(&mut self) -> Option<usize> {
        std::mem::take(&mut self.open).then(|| self.contact.count(|open| open.saturating_sub(1)))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::Contact;
    use std::sync::Arc;

    #[test]
    fn only_the_end_of_all_of_them_by_the_engine_counts() {
        let contact = Arc::new(Contact::default());
        let (mut first, mut second) = (contact.line(), contact.line());
        first.ended_by_peer();
        first.ended_by_peer();
        assert_eq!(contact.interruptions(), 0, "one of two");
        drop(first);
        second.ended_by_peer();
        assert_eq!(contact.interruptions(), 1, "the last one");
        drop(second);
        drop(contact.line());
        assert_eq!(contact.interruptions(), 1, "ended from this side");
        contact.line().ended_by_peer();
        assert_eq!(contact.interruptions(), 2);
    }
}
