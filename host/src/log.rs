//! The process's log: lines on stderr, written by a thread of their own. Whoever logs never waits;
//! what the thread cannot keep up with is dropped, counted and reported.

use std::io::{self, BufWriter};
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Lines that may wait to be written. A line is mostly below 300 bytes.
const WAITING: usize = 32_768;
/// Lines that are waiting together are written together, up to so many bytes.
const TOGETHER: usize = 64 << 10;
/// How often lines that were dropped are reported.
const REPORT: Duration = Duration::from_secs(10);

/// Keeps the log going; what is waiting is written when it is dropped.
pub struct Log {
    dropped: ErrorCounter,
    _writer: WorkerGuard,
}

/// Starts the log: text, or one JSON object a line. `WHARF_LOG` says what is logged.
pub fn to_stderr(json: bool) -> Log {
    let filter = EnvFilter::try_from_env("WHARF_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (lines, writer) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(WAITING)
        .thread_name("log")
        .finish(BufWriter::with_capacity(TOGETHER, io::stderr()));
    let dropped = lines.error_counter();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines);
    if json {
        log.json().init();
    } else {
        log.with_ansi(false).init();
    }
    Log {
        dropped,
        _writer: writer,
    }
}

impl Log {
    /// Reports what is dropped, for ever.
    pub async fn report(&self) {
        let mut reported = 0;
        loop {
            tokio::time::sleep(REPORT).await;
            let dropped = self.dropped.dropped_lines();
            if dropped > reported {
                tracing::warn!(lines = dropped - reported, "log lines were dropped");
                reported = dropped;
            }
        }
    }
}
