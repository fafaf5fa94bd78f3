//! Detects lost contact with an engine. A restart of the engine ends all connections, however short it
//! is; otherwise an engine ends only some idle ones.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The connections to one engine.
#[derive(Debug, Default)]
pub struct Contact {
    open: Mutex<usize>,
    interruptions: AtomicU64,
}

/// One open connection.
#[derive(Debug)]
pub struct OpenConnection {
    contact: Arc<Contact>,
    open: bool,
}

impl Contact {
    /// How often the engine has ended the last open connection.
    pub fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::SeqCst)
    }

    /// Counts a new connection.
    pub fn connection(self: &Arc<Self>) -> OpenConnection {
        self.count(|open| open.saturating_add(1));
        OpenConnection {
            contact: Arc::clone(self),
            open: true,
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) -> usize {
        let mut open = self.open.lock();
        *open = change(*open);
        *open
    }
}

impl OpenConnection {
    /// Notes that the engine ended the connection.
    pub fn ended_by_peer(&mut self) {
        if self.close() == Some(0) {
            self.contact.interruptions.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The number of other open connections, if this one was open.
    fn close(&mut self) -> Option<usize> {
        std::mem::take(&mut self.open).then(|| self.contact.count(|open| open.saturating_sub(1)))
    }
}

impl Drop for OpenConnection {
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
        let (mut first, mut second) = (contact.connection(), contact.connection());
        first.ended_by_peer();
        first.ended_by_peer();
        assert_eq!(contact.interruptions(), 0, "one of two");
        drop(first);
        second.ended_by_peer();
        assert_eq!(contact.interruptions(), 1, "the last one");
        drop(second);
        drop(contact.connection());
        assert_eq!(contact.interruptions(), 1, "ended from this side");
        contact.connection().ended_by_peer();
        assert_eq!(contact.interruptions(), 2);
    }
}
