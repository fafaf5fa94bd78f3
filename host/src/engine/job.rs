//! Requests that outlast a call of a driver, such as an image pull. The host carries them on;
//! calls ask for them by key. Transfers between containers are of the kind.

use super::message::{EngineError, JobState, Response, Transfer};
use super::transfer;
use super::transport::{Outgoing, Progress, Transport};
use bytes::Bytes;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Jobs of one node at a time.
const MAX_JOBS: usize = 16;
/// Transfers of one node at a time: each keeps a disk busy.
const MAX_TRANSFERS: usize = 4;
/// A transfer that moves may take this long.
const MAX_TRANSFER_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest key, bytes.
const MAX_KEY: usize = 512;
/// A job ends after this long.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);
/// How long the result of a job is told: a later asker means it to be done now.
const FRESH: Duration = Duration::from_secs(60);
/// The same for a transfer, which is not done again lightly; its asker may be long in coming.
const TRANSFER_FRESH: Duration = Duration::from_secs(60 * 60);
/// How much of the end of an answer is kept, bytes.
const TAIL: usize = 64 * 1024;
/// Longest line told as progress, bytes.
const MAX_LINE: usize = 1024;

/// The jobs of one node.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<HashMap<String, Job>>);

#[derive(Debug)]
struct Job {
    task: JoinHandle<()>,
    /// How long after its end its result is told.
    fresh: Duration,
    tail: Arc<Tail>,
    result: Arc<Mutex<Option<Finished>>>,
}

#[derive(Debug)]
struct Finished {
    at: Instant,
    how: Result<Response, EngineError>,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Jobs {
    /// Where the job with this key is; starts it with `outgoing` if there is none. A result is told
    /// once.
    pub fn poll(
        &self,
        key: &str,
        outgoing: Outgoing,
        transport: &Transport,
    ) -> Result<JobState, EngineError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(EngineError::Refused(format!(
                "a job's key has 1 to {MAX_KEY} bytes"
            )));
        }
        let mut jobs = locked(&self.0);
        if let Some(state) = told(&mut jobs, key) {
            return Ok(state);
        }
        has_room(&jobs, false, MAX_JOBS)?;
        let transport = transport.clone();
        let job = Job::start(MAX_TIME, FRESH, |tail| async move {
            transport.stream(outgoing, &*tail).await
        });
        jobs.insert(key.to_owned(), job);
        Ok(JobState::Running(None))
    }

    /// Begins a transfer under a key, in place of the one that was there.
    pub fn transfer(
        &self,
        key: &str,
        what: Transfer,
        transport: &Transport,
    ) -> Result<(), EngineError> {
        let mut jobs = locked(&self.0);
        jobs.remove(key);
        has_room(&jobs, true, MAX_TRANSFERS)?;
        let transport = transport.clone();
        let job = Job::start(MAX_TRANSFER_TIME, TRANSFER_FRESH, |tail| {
            transfer::carry(transport, what, tail)
        });
        jobs.insert(key.to_owned(), job);
        Ok(())
    }

    /// Where the job with this key is, if there is one. A result is told once.
    pub fn state(&self, key: &str) -> Option<JobState> {
        told(&mut locked(&self.0), key)
    }

    /// Ends the job with this key, if there is one.
    pub fn end(&self, key: &str) {
        locked(&self.0).remove(key);
    }
}

/// What there is to say of the job with this key. Results that nobody came for in time are forgotten.
fn told(jobs: &mut HashMap<String, Job>, key: &str) -> Option<JobState> {
    jobs.retain(|_, job| !job.is_stale());
    let job = jobs.get(key)?;
    let result = locked(&job.result).take();
    Some(match result {
        None => JobState::Running(job.tail.line()),
        Some(Finished { how, .. }) => {
            jobs.remove(key);
            how.map_or_else(JobState::Failed, JobState::Done)
        }
    })
}

/// Fails while so many jobs of the kind are under way.
fn has_room(jobs: &HashMap<String, Job>, transfers: bool, most: usize) -> Result<(), EngineError> {
    let of_kind = |job: &&Job| (job.fresh == TRANSFER_FRESH) == transfers;
    let under_way = jobs
        .values()
        .filter(of_kind)
        .filter(|job| !job.is_finished());
    if under_way.count() < most {
        return Ok(());
    }
    let what = if transfers { "transfers" } else { "jobs" };
    Err(EngineError::Unreachable(format!(
        "{most} {what} are under way on this node"
    )))
}

impl Job {
    fn is_finished(&self) -> bool {
        self.task.is_finished() || locked(&self.result).is_some()
    }

    fn is_stale(&self) -> bool {
        let result = locked(&self.result);
        result.as_ref().is_some_and(|f| f.at.elapsed() > self.fresh)
    }

    fn start<F>(most: Duration, fresh: Duration, work: impl FnOnce(Arc<Tail>) -> F) -> Self
    where
        F: Future<Output = Result<Response, EngineError>> + Send + 'static,
    {
        let tail = Arc::new(Tail::default());
        let result = Arc::new(Mutex::new(None));
        let (work, slot) = (work(Arc::clone(&tail)), Arc::clone(&result));
        let task = tokio::spawn(async move {
            let answer = tokio::time::timeout(most, work).await;
            *locked(&slot) = Some(Finished {
                at: Instant::now(),
                how: answer.unwrap_or(Err(EngineError::Timeout)),
            });
        });
        Self {
            task,
            fresh,
            tail,
            result,
        }
    }
}

/// The end of an answer that is still coming in.
#[derive(Debug, Default)]
struct Tail(Mutex<Vec<u8>>);

impl Progress for Tail {
    fn chunk(&self, bytes: &[u8]) {
        let mut tail = locked(&self.0);
        tail.extend_from_slice(bytes);
        // Cut rarely, so that a long stream of small pieces isn't moved at each of them.
        if tail.len() > 2 * TAIL {
            let surplus = tail.len() - TAIL;
            tail.drain(..surplus);
        }
    }

    fn kept(&self) -> Bytes {
        let tail = locked(&self.0);
        let from = tail.len().saturating_sub(TAIL);
        Bytes::copy_from_slice(tail.get(from..).unwrap_or_default())
    }
}

impl Tail {
    /// The last line that has ended.
    fn line(&self) -> Option<String> {
        let tail = locked(&self.0);
        let end = tail.iter().rposition(|byte| *byte == b'\n')?;
        let whole = tail.get(..end)?;
        let start = whole
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = whole.get(start..)?;
        let line = line.get(..line.len().min(MAX_LINE))?;
        Some(String::from_utf8_lossy(line).trim().to_owned())
    }
}

/// A poisoned lock only means that a panic passed by; what it guards is whole after every write.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(fresh: Duration) -> Job {
        let response = Response {
            status: 200,
            headers: Vec::new(),
            body: Bytes::new(),
        };
        Job::start(MAX_TIME, fresh, |_| async { Ok(response) })
    }

    #[tokio::test]
    async fn a_result_is_told_once_and_for_a_while_and_takes_no_room() {
        let never = || Job::start(MAX_TIME, TRANSFER_FRESH, |_| std::future::pending());
        let mut jobs = HashMap::from([
            ("told".to_owned(), ended(TRANSFER_FRESH)),
            ("late".to_owned(), ended(Duration::ZERO)),
            ("runs".to_owned(), never()),
        ]);
        while jobs.values().filter(|job| job.is_finished()).count() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(has_room(&jobs, true, 1).is_err());
        assert!(has_room(&jobs, true, 2).is_ok() && has_room(&jobs, false, 1).is_ok());
        assert!(matches!(
            told(&mut jobs, "runs"),
            Some(JobState::Running(None))
        ));
        assert!(told(&mut jobs, "late").is_none());
        assert!(matches!(told(&mut jobs, "told"), Some(JobState::Done(_))));
        assert!(told(&mut jobs, "told").is_none());
    }

    #[test]
    fn the_tail_is_bounded_and_knows_the_last_whole_line() {
        let tail = Tail::default();
        assert_eq!(tail.line(), None);
        tail.chunk(b"one\r\ntwo\nthr");
        assert_eq!(tail.line().as_deref(), Some("two"));
        tail.chunk(b"ee\n");
        assert_eq!(tail.line().as_deref(), Some("three"));
        for _ in 0..100 {
            tail.chunk(&[b'x'; 4096]);
        }
        assert_eq!(tail.kept().len(), TAIL);
    }
}
