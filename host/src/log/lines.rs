//! Lines on their way to a slow place, written by a thread of their own.
//!
//! While lines come, the thread looks for them by the clock and nobody wakes it: a wake for each line
//! costs its request more than the line itself does.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes that may wait to be written. A line is mostly below 300.
const MOST: usize = 8 << 20;
/// How long what was written together is apart.
const PAUSE: Duration = Duration::from_millis(5);
/// What is left at the end may take so long.
const LAST: Duration = Duration::from_secs(1);

/// Takes lines from everyone.
#[derive(Debug, Default)]
pub struct Lines {
    waiting: Mutex<Vec<u8>>,
    dropped: AtomicU64,
    /// The thread will look without being woken.
    looking: AtomicBool,
    ended: AtomicBool,
}

/// The thread. When it is dropped, what is waiting is written first.
#[derive(Debug)]
pub struct Writer {
    lines: Arc<Lines>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread.
pub fn to(place: impl Write + Send + 'static) -> io::Result<(Arc<Entry>, Writer)> {
    let lines = Arc::new(Lines::default());
    let thread = thread::Builder::new().name("log".to_owned()).spawn({
        let lines = Arc::clone(&lines);
        move || lines.write_to(place)
    })?;
    let entry = Arc::new(Entry {
        lines: Arc::clone(&lines),
        thread: thread.thread().clone(),
    });
    let writer = Writer {
        lines,
        thread: Some(thread),
    };
    Ok((entry, writer))
}

/// Where a line goes in. Each call of `write` is a whole line.
#[derive(Debug)]
pub struct Entry {
    lines: Arc<Lines>,
    thread: thread::Thread,
}

impl Entry {
    /// How many lines were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.lines.dropped.load(Ordering::Relaxed)
    }
}

impl Write for &Entry {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !self.lines.add(line) {
            self.lines.dropped.fetch_add(1, Ordering::Relaxed);
        } else if !self.lines.looks() {
            self.thread.unpark();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the thread will; if not, it is to be woken by who asks. While it does, nothing is written
    /// here, so that no core waits for another's copy.
    fn looks(&self) -> bool {
        self.looking.load(Ordering::SeqCst) || self.looking.swap(true, Ordering::SeqCst)
    }

    fn add(&self, line: &[u8]) -> bool {
        let mut waiting = self.waiting();
        let fits = waiting.len() + line.len() <= MOST;
        if fits {
            waiting.extend_from_slice(line);
        }
        fits
    }

    fn write_to(&self, mut place: impl Write) {
        let mut batch = Vec::new();
        loop {
            batch.clear();
            mem::swap(&mut batch, &mut *self.waiting());
            if !batch.is_empty() {
                // There is nobody to tell where standard error is closed.
                let _ = place.write_all(&batch).and_then(|()| place.flush());
                if !self.ended.load(Ordering::SeqCst) {
                    thread::sleep(PAUSE);
                }
                continue;
            }
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            self.looking.store(false, Ordering::SeqCst);
            // A line that came before that was stored has woken nobody.
            if self.waiting().is_empty() && !self.ended.load(Ordering::SeqCst) {
                thread::park();
            }
            self.looking.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lines.ended.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.thread().unpark();
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < LAST {
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, to};
    use crate::log::kept::Kept;
    use std::io::{self, Write};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn every_line_is_written_whole_and_in_its_threads_order() {
        let kept = Kept::default();
        let (entry, writer) = to(kept.clone()).unwrap();
        thread::scope(|scope| {
            for who in 0..4 {
                let entry = &entry;
                scope.spawn(move || {
                    for n in 0..2_000 {
                        writeln!(Whole(entry), "{who} {n}").unwrap();
                        if n % 500 == 0 {
                            // Long enough for the writing thread to have nothing to do.
                            thread::sleep(Duration::from_millis(8));
                        }
                    }
                });
            }
        });
        drop(writer);
        let text = kept.text();
        for who in 0..4 {
            let prefix = format!("{who} ");
            let mine: Vec<usize> = text
                .lines()
                .filter_map(|line| line.strip_prefix(&prefix)?.parse().ok())
                .collect();
            assert_eq!(mine, (0..2_000).collect::<Vec<_>>());
        }
        assert_eq!((text.lines().count(), entry.dropped()), (8_000, 0));
    }

    #[test]
    fn a_single_line_does_not_wait_for_another() {
        let kept = Kept::default();
        let (entry, _writer) = to(kept.clone()).unwrap();
        for n in 1..=3 {
            thread::sleep(Duration::from_millis(20));
            (&*entry).write_all(b"line\n").unwrap();
            let mut looks = 0;
            while kept.text().len() < 5 * n {
                looks += 1;
                assert!(looks < 5_000, "it is not written");
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Takes nothing until it is told to.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let (go, wait): (Sender<()>, _) = channel();
        let (entry, writer) = to(Stuck(wait)).unwrap();
        let line = [b'x'; 1 << 10];
        let lines = 3 * MOST / line.len();
        for _ in 0..lines {
            (&*entry).write_all(&line).unwrap();
        }
        let dropped = entry.dropped();
        assert!(dropped > 0 && dropped < lines as u64, "{dropped}");
        drop(go);
        drop(writer);
    }

    /// One `write` for what the macro writes in pieces.
    struct Whole<'a>(&'a super::Entry);

    impl Write for Whole<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
            (&mut self.0).write_all(text.to_string().as_bytes())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
