//! The process's log: lines on stderr, written by a thread of their own. Whoever logs never waits;
//! what the thread cannot keep up with is dropped, counted and reported.

#[cfg(test)]
mod kept;
mod lines;
mod text;

use lines::{Entry, Writer};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// How often lines that were dropped are reported.
const REPORT: Duration = Duration::from_secs(10);

/// Keeps the log going; what is waiting is written when it is dropped.
pub struct Log {
    entry: Arc<Entry>,
    _writer: Writer,
}

/// Starts the log: text, or one JSON object a line. `WHARF_LOG` says what is logged.
///
/// # Errors
/// When the process may have no more threads.
pub fn to_stderr(json: bool) -> io::Result<Log> {
    let filter = EnvFilter::try_from_env("WHARF_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (entry, writer) = lines::to(io::stderr())?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Arc::clone(&entry));
    if json {
        log.json().init();
    } else {
        log.with_ansi(false).event_format(text::Text).init();
    }
    Ok(Log {
        entry,
        _writer: writer,
    })
}

impl Log {
    /// Reports what is dropped, for ever.
    pub async fn report(&self) {
        let mut reported = 0;
        loop {
            tokio::time::sleep(REPORT).await;
            let dropped = self.entry.dropped();
            if dropped > reported {
                tracing::warn!(lines = dropped - reported, "log lines were dropped");
                // That line may have been dropped itself.
                if self.entry.dropped() == dropped {
                    reported = dropped;
                }
            }
        }
    }
}
