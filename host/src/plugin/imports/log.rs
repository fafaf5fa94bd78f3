//! A guest's log lines, and what it prints.

use crate::domain::ids::NodeId;
use crate::plugin::bindings::log;
use crate::plugin::convert::text::clean;
use crate::plugin::guest::Guest;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{debug, error, info, warn};

/// Lines of one call that are kept.
const MAX_LINES: u32 = 100;
/// Longest line, bytes.
pub const MAX_LINE: usize = 4096;

/// Where one call's lines go.
#[derive(Debug, Clone)]
pub struct LogSink(Arc<Sink>);

#[derive(Debug)]
struct Sink {
    plugin: Arc<str>,
    node: Option<NodeId>,
    function: &'static str,
    lines: AtomicU32,
    last_words: Mutex<String>,
}

impl LogSink {
    /// For one call.
    pub fn new(plugin: Arc<str>, node: Option<NodeId>, function: &'static str) -> Self {
        let sink = Sink {
            plugin,
            node,
            function,
            lines: AtomicU32::new(0),
            last_words: Mutex::default(),
        };
        Self(Arc::new(sink))
    }

    /// Writes one line, unless the call has written too many.
    pub fn write(&self, level: log::Level, message: &str) {
        let Sink {
            plugin,
            node,
            function,
            lines,
            ..
        } = &*self.0;
        let line = lines.fetch_add(1, Ordering::Relaxed);
        if line > MAX_LINES {
            return;
        }
        let node = node.as_ref().map(|node| node.0.as_str());
        if line == MAX_LINES {
            warn!(plugin = %plugin, node, function, "further lines of this call are dropped");
            return;
        }
        let message = clean(message, MAX_LINE);
        match level {
            log::Level::Debug => debug!(plugin = %plugin, node, function, "{message}"),
            log::Level::Info => info!(plugin = %plugin, node, function, "{message}"),
            log::Level::Warn => warn!(plugin = %plugin, node, function, "{message}"),
            log::Level::Error => error!(plugin = %plugin, node, function, "{message}"),
        }
    }

    /// A line of standard output or error. Kept as well: the last one before a trap is the panic's.
    pub fn printed(&self, line: &str, error: bool) {
        if error {
            let mut words = self
                .0
                .last_words
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
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

    /// What the guest printed to standard error.
    pub fn last_words(&self) -> String {
        self.0
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl log::Host for Guest {
    async fn write(&mut self, level: log::Level, message: String) {
        self.log.write(level, &message);
    }
}
