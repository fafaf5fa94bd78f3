//! A guest's log lines and its output. They are logged in the span of their call.

use crate::bindings::log;
use crate::convert::clean;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tracing::{debug, error, info, warn};

/// Lines of one call that are logged.
const MAX_LINES: u32 = 100;
/// Longest line, bytes.
pub const MAX_LINE: usize = 4096;

/// Takes the lines of one call.
#[derive(Debug, Clone, Default)]
pub struct LogSink(Arc<Sink>);

#[derive(Debug, Default)]
struct Sink {
    lines: AtomicU32,
    last_words: Mutex<String>,
}

impl LogSink {
    /// Logs one line, unless the call has logged too many.
    pub fn write(&self, level: log::Level, message: &str) {
        let line = self.0.lines.fetch_add(1, Ordering::Relaxed);
        if line > MAX_LINES {
            return;
        }
        if line == MAX_LINES {
            warn!("further lines of this call are dropped");
            return;
        }
        let message = clean(message, MAX_LINE);
        match level {
            log::Level::Debug => debug!("{message}"),
            log::Level::Info => info!("{message}"),
            log::Level::Warn => warn!("{message}"),
            log::Level::Error => error!("{message}"),
        }
    }

    /// Logs a line of standard output or error. Lines of standard error are kept, as the text of a panic
    /// is there.
    pub fn printed(&self, line: &str, error: bool) {
        if error {
            let mut words = self.0.last_words.lock();
            if words.len() < MAX_LINE {
                if !words.is_empty() {
                    words.push_str(" / ");
                }
                words.push_str(&clean(line, MAX_LINE));
            }
        }
        self.write(
            if error {
                log::Level::Warn
            } else {
                log::Level::Info
            },
            line,
        );
    }

    /// The guest's standard error so far.
    pub fn last_words(&self) -> String {
        self.0.last_words.lock().clone()
    }
}
