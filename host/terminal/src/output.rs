//! The output of a shell between its SSH connection and the client.

use super::TerminalEnd;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The bytes that are kept for a client that attaches. They are also the most that a client may lag
/// behind before the shell has to wait.
pub const KEPT: usize = 256 * 1024;

/// The most bytes that a client takes at once.
const PIECE: usize = 32 * 1024;

/// The bytes in which the beginning of a line is searched, where earlier output is missing.
const LINE: usize = 4096;

/// The last part of a shell's output. A client that does not take it stops the shell; without a
/// client, the oldest bytes are dropped.
#[derive(Debug)]
pub struct Output {
    state: Mutex<OutputState>,
    /// Notified when the shell may write more. It is the only one that waits.
    room: Notify,
    /// Notified of output, of another client and of the end.
    changed: Notify,
}

#[derive(Debug)]
struct OutputState {
    kept: VecDeque<u8>,
    /// Number of bytes that were kept and dropped.
    dropped: u64,
    client: Option<AttachedClient>,
    clients: u64,
    unattended_since: Instant,
    end: Option<TerminalEnd>,
}

/// The attached client.
#[derive(Debug, Clone, Copy)]
struct AttachedClient {
    number: u64,
    /// Position in all output of the next byte to take.
    next: u64,
}

/// The next thing for a client.
#[derive(Debug, PartialEq, Eq)]
pub enum NextOutput {
    Bytes(Bytes),
    /// The terminal has ended.
    End(TerminalEnd),
    /// Another client has attached.
    Replaced,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            state: Mutex::new(OutputState {
                kept: VecDeque::new(),
                dropped: 0,
                client: None,
                clients: 0,
                unattended_since: Instant::now(),
                end: None,
            }),
            room: Notify::new(),
            changed: Notify::new(),
        }
    }
}

impl Output {
    /// Adds output of the shell. Waits while an attached client lags behind.
    pub async fn put(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.state.lock().put(bytes);
            if taken == 0 {
                self.room.notified().await;
            } else {
                bytes = bytes.get(taken..).unwrap_or_default();
                self.changed.notify_waiters();
            }
        }
    }

    /// Attaches a client in place of the present one. Returns its number, and the number of earlier
    /// bytes that it gets.
    pub fn attach(&self) -> (u64, u64) {
        let mut state = self.state.lock();
        state.clients += 1;
        let number = state.clients;
        let next = state.dropped + state.first_line();
        state.client = Some(AttachedClient { number, next });
        let replayed = state.total() - next;
        drop(state);
        self.room.notify_one();
        self.changed.notify_waiters();
        (number, replayed)
    }

    /// Detaches a client if it still is the attached one. The shell then runs on without a client.
    pub fn detach(&self, number: u64) {
        let mut state = self.state.lock();
        if state.client.is_some_and(|client| client.number == number) {
            state.client = None;
            state.unattended_since = Instant::now();
            self.room.notify_one();
        }
    }

    /// The next thing for a client.
    pub async fn next(&self, number: u64) -> NextOutput {
        self.wait(|state| {
            let next = state.take(number);
            if matches!(next, Some(NextOutput::Bytes(_))) {
                self.room.notify_one();
            }
            next
        })
        .await
    }

    /// Waits for something that a client learns before the output that it has not taken.
    pub async fn cut(&self, number: u64) -> NextOutput {
        self.wait(|state| state.cut(number)).await
    }

    async fn wait<T>(&self, mut find: impl FnMut(&mut OutputState) -> Option<T>) -> T {
        loop {
            // Registered before the check, or a change in between would be lost.
            let changed = self.changed.notified();
            if let Some(found) = find(&mut self.state.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// Sets the end; an earlier one stays. Returns whether it was set.
    pub fn end(&self, end: TerminalEnd) -> bool {
        let mut state = self.state.lock();
        let first = state.end.is_none();
        state.end.get_or_insert(end);
        drop(state);
        self.changed.notify_waiters();
        first
    }

    /// Whether the terminal has ended.
    pub fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// The time since the last client was detached; none while one is attached.
    pub fn unattended(&self) -> Option<Duration> {
        let state = self.state.lock();
        let since = state.client.is_none().then_some(state.unattended_since);
        since.map(|since| since.elapsed())
    }
}

impl OutputState {
    fn total(&self) -> u64 {
        self.dropped + length(self.kept.len())
    }

    /// Keeps the beginning of some bytes, and returns its length.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let room = match self.client {
            Some(client) => KEPT.saturating_sub(size(self.total() - client.next)),
            None => KEPT,
        };
        let (bytes, _) = bytes.split_at(bytes.len().min(room));
        let excess = (self.kept.len() + bytes.len()).saturating_sub(KEPT);
        self.kept.drain(..excess);
        self.dropped += length(excess);
        self.kept.extend(bytes);
        bytes.len()
    }

    /// The offset at which a replay begins. Where earlier output is missing, that is the beginning of a
    /// line, so that no control sequence is cut.
    fn first_line(&self) -> u64 {
        if self.dropped == 0 {
            return 0;
        }
        let line = self.kept.iter().take(LINE).position(|byte| *byte == b'\n');
        let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let start = match line {
            Some(line) => line + 1,
            None => self.kept.iter().take(3).take_while(is_continuation).count(),
        };
        length(start)
    }

    fn take(&mut self, number: u64) -> Option<NextOutput> {
        if let Some(cut) = self.cut(number) {
            return Some(cut);
        }
        let client = self.client.as_mut()?;
        let start = size(client.next - self.dropped);
        let end = self.kept.len().min(start + PIECE);
        if start < end {
            client.next += length(end - start);
            let bytes = self.kept.range(start..end).copied().collect();
            return Some(NextOutput::Bytes(bytes));
        }
        self.end.map(NextOutput::End)
    }

    fn cut(&self, number: u64) -> Option<NextOutput> {
        if self.client.is_none_or(|client| client.number != number) {
            return Some(NextOutput::Replaced);
        }
        let end = self.end.filter(|end| !end.comes_after_output());
        end.map(NextOutput::End)
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A distance between two positions that are both in memory.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{KEPT, NextOutput, Output, PIECE, TerminalEnd};
    use bytes::Bytes;
    use std::time::Duration;
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_millis(20);

    fn bytes(text: &'static str) -> NextOutput {
        NextOutput::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn a_client_that_attaches_gets_the_output_so_far_and_what_follows() {
        let output = Output::default();
        output.put(b"one").await;
        let (first, replayed) = output.attach();
        assert_eq!(replayed, 3);
        assert_eq!(output.next(first).await, bytes("one"));
        assert!(timeout(SOON, output.next(first)).await.is_err());
        output.put(b"two").await;
        let (second, replayed) = output.attach();
        assert_eq!(replayed, 6);
        assert_eq!(output.next(first).await, NextOutput::Replaced);
        assert_eq!(output.cut(first).await, NextOutput::Replaced);
        // The detachment of a replaced client changes nothing.
        output.detach(first);
        assert_eq!(output.next(second).await, bytes("onetwo"));
        assert!(output.unattended().is_none());
        output.detach(second);
        assert!(output.unattended().is_some());
    }

    #[tokio::test]
    async fn a_client_that_lags_stops_the_shell_until_it_takes_or_goes() {
        let output = Output::default();
        let (client, _) = output.attach();
        let much = vec![b'x'; KEPT + 1];
        assert!(timeout(SOON, output.put(&much)).await.is_err());
        assert!(timeout(SOON, output.put(b"y")).await.is_err());
        let NextOutput::Bytes(piece) = output.next(client).await else {
            panic!("no bytes");
        };
        assert_eq!(piece.len(), PIECE);
        timeout(SOON, output.put(b"y")).await.unwrap();
        output.put(&much[..PIECE - 1]).await;
        let (_, detached) = tokio::join!(output.put(&much), async {
            tokio::time::sleep(SOON).await;
            output.detach(client);
        });
        assert_eq!(detached, ());
        assert_eq!(output.attach().1, KEPT as u64);
    }

    #[tokio::test]
    async fn without_a_client_the_last_bytes_are_kept_from_a_line_on() {
        let output = Output::default();
        let mut lines = Vec::new();
        for n in 0..100_000 {
            lines.extend_from_slice(format!("line {n}\n").as_bytes());
        }
        output.put(&lines).await;
        let (client, replayed) = output.attach();
        let mut replay = Vec::new();
        while replay.len() < usize::try_from(replayed).unwrap() {
            match output.next(client).await {
                NextOutput::Bytes(bytes) => replay.extend_from_slice(&bytes),
                other => panic!("{other:?}"),
            }
        }
        assert!(lines.ends_with(&replay) && replay.starts_with(b"line "));
        assert!(
            (KEPT - 16..=KEPT).contains(&replay.len()),
            "{}",
            replay.len()
        );
    }

    #[tokio::test]
    async fn a_replay_without_lines_cuts_no_character() {
        let output = Output::default();
        output.put("ä".repeat(KEPT / 2).as_bytes()).await;
        output.put(b"x").await;
        let (client, _) = output.attach();
        let NextOutput::Bytes(first) = output.next(client).await else {
            panic!("no bytes");
        };
        assert!(first.starts_with("ä".as_bytes()));
    }

    #[tokio::test]
    async fn an_exit_follows_the_output_and_a_revocation_does_not_wait_for_it() {
        for (end, after) in [
            (TerminalEnd::Exited(Some(3)), true),
            (TerminalEnd::Access, false),
        ] {
            let output = Output::default();
            let (client, _) = output.attach();
            output.put(b"last").await;
            assert!(output.end(end) && !output.end(TerminalEnd::Shutdown));
            if after {
                assert!(timeout(SOON, output.cut(client)).await.is_err());
                assert_eq!(output.next(client).await, bytes("last"));
            } else {
                assert_eq!(output.cut(client).await, NextOutput::End(end));
            }
            assert_eq!(output.next(client).await, NextOutput::End(end));
        }
    }
}
