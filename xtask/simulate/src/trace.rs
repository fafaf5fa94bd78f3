//! The trace of a run: one line for each event, with its time. Two runs of one seed have equal traces.

use crate::time::SimTime;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tracing_subscriber::fmt::MakeWriter;
use uuid::Uuid;

/// The most lines of a run.
const MOST: usize = 100_000;

/// The trace of a run. Clones share it.
#[derive(Debug, Clone)]
pub struct Trace {
    time: SimTime,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    /// Short names of ids, which replace them.
    names: BTreeMap<String, String>,
}

impl Trace {
    pub fn new(time: SimTime) -> Self {
        Self {
            time,
            lines: Arc::default(),
        }
    }

    /// Gives an id a short name, such as `i3`.
    pub fn name(&self, id: Uuid, name: &str) {
        let mut lines = self.lines.lock();
        lines.names.insert(id.to_string(), name.to_owned());
    }

    /// Adds a line. `who` is the party, such as `alice`, `n1` or `log`.
    ///
    /// # Panics
    ///
    /// With more lines than a run has. A task that repeats itself in no time would hold up all others.
    #[expect(clippy::panic, reason = "nothing else ends a task that never waits")]
    pub fn line(&self, who: &str, text: &str) {
        let at = self.time.now().as_millis();
        let (seconds, millis) = (at / 1000, at % 1000);
        let text = text.replace('\n', " ");
        let line = format!("{seconds:>7}.{millis:03}  {who:<8} {text}");
        let count = {
            let mut lines = self.lines.lock();
            lines.lines.push(line);
            lines.lines.len()
        };
        if count == MOST {
            panic!("there is no end: {text}");
        }
    }

    pub fn len(&self) -> usize {
        self.lines.lock().lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines so far, with the short names of ids.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock();
        lines.lines.iter().map(|line| lines.named(line)).collect()
    }

    /// A text with the short names of ids.
    pub fn named(&self, text: &str) -> String {
        self.lines.lock().named(text)
    }
}

impl Lines {
    fn named(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, name) in &self.names {
            if text.contains(id) {
                text = text.replace(id, name);
            }
        }
        text
    }
}

/// A line of the product's log on its way into the trace.
#[derive(Debug)]
pub struct LogLine {
    trace: Trace,
    text: Vec<u8>,
}

impl io::Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        self.trace.line("log", text.trim());
    }
}

impl<'a> MakeWriter<'a> for Trace {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine {
            trace: self.clone(),
            text: Vec::new(),
        }
    }
}
