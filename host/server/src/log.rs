//! The process's log on stderr, written by threads of its own. Lines below WARN are dropped while the
//! writer is behind, counted and reported; lines of WARN and above are never dropped.

mod fields;

use std::io::{self, BufWriter, Write};
use std::time::Duration;
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

/// How often dropped lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Lines that may wait for each of the two writers. Most lines are shorter than 300 bytes.
const QUEUE: usize = 16 << 10;
/// The size of a writer's buffer, bytes. A writer that is behind writes many lines at once.
const BUFFER: usize = 64 << 10;

/// The running log. Dropping it writes the queued lines, within about a second.
pub struct Log {
    dropped: ErrorCounter,
    _writers: [WorkerGuard; 2],
}

/// Starts the log: text, or one JSON object per line. `WHARF_LOG` is its filter.
pub fn to_stderr(json: bool) -> Log {
    let filter = EnvFilter::try_from_env("WHARF_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (lines, log) = queues(io::stderr);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines);
    if json {
        subscriber.json().init();
    } else {
        let text = subscriber.with_ansi(false);
        text.fmt_fields(fields::escaped()).init();
    }
    log
}

impl Log {
    /// Reports dropped lines, for ever.
    pub async fn report(&self) {
        let mut reported = 0;
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            let dropped = self.dropped.dropped_lines();
            if dropped > reported {
                tracing::warn!(lines = dropped - reported, "log lines were dropped");
                reported = dropped;
            }
        }
    }
}

/// One queue for each kind of line, each with a writer to a target of its own.
fn queues<W: Write + Send + 'static>(
    target: impl Fn() -> W,
) -> (impl for<'a> MakeWriter<'a> + Send + Sync + 'static, Log) {
    let queue = |lossy| {
        NonBlockingBuilder::default()
            .lossy(lossy)
            .buffered_lines_limit(QUEUE)
            .thread_name("log")
            .finish(BufWriter::with_capacity(BUFFER, target()))
    };
    let (lossy, lossy_writer): (NonBlocking, _) = queue(true);
    let (lossless, lossless_writer) = queue(false);
    let log = Log {
        dropped: lossy.error_counter(),
        _writers: [lossy_writer, lossless_writer],
    };
    (lossless.with_max_level(Level::WARN).or_else(lossy), log)
}

#[cfg(test)]
mod tests {
    use super::{QUEUE, queues};
    use std::io::{self, Write};
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::{Duration, Instant};

    /// A target that keeps its lines, and blocks until it is opened.
    #[derive(Clone, Default)]
    struct BlockedWriter(Arc<(Mutex<State>, Condvar)>);

    type State = (bool, Vec<u8>);

    impl BlockedWriter {
        fn open(&self) {
            self.0.0.lock().unwrap().0 = true;
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.0.lock().unwrap().1.clone()).unwrap()
        }
    }

    impl Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (state, opened) = &*self.0;
            let mut state = opened
                .wait_while(state.lock().unwrap(), |(open, _)| !*open)
                .unwrap();
            state.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_lines_below_warn_are_dropped_and_they_are_counted() {
        let target = BlockedWriter::default();
        let (lines, log) = queues({
            let target = target.clone();
            move || target.clone()
        });
        let subscriber = tracing_subscriber::fmt()
            .with_writer(lines)
            .with_ansi(false)
            .finish();
        let logged = 2 * QUEUE;
        let logging = std::thread::spawn(move || {
            tracing::subscriber::with_default(subscriber, || {
                for n in 0..logged {
                    tracing::info!("info {n}");
                }
                for n in 0..logged {
                    tracing::warn!("warn {n}");
                }
            });
        });
        let begin = Instant::now();
        while log.dropped.dropped_lines() == 0 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "no line was dropped"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        target.open();
        logging.join().unwrap();
        let dropped = log.dropped.dropped_lines();
        drop(log);
        let text = target.text();
        let count = |kind: &str| text.lines().filter(|line| line.contains(kind)).count();
        assert_eq!(count("warn "), logged);
        assert_eq!(count("info "), logged - dropped);
    }
}
