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
/// Jobs of one node, with results that nobody has come for yet.
const MAX_KEPT: usize = 32;
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
        has_room(&mut jobs, MAX_JOBS, "jobs")?;
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
        has_room(&mut jobs, MAX_TRANSFERS, "transfers")?;
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
    let is_over = job.task.is_finished();
    let result = locked(&job.result).take();
    Some(match result {
        None if is_over => {
            jobs.remove(key);
            JobState::Failed(EngineError::Unreachable("the host's job broke off".into()))
        }
        None => JobState::Running(job.tail.line()),
        Some(Finished { how, .. }) => {
            jobs.remove(key);
            how.map_or_else(JobState::Failed, JobState::Done)
        }
    })
}

/// Fails while so many are under way. Too many results that nobody came for make room, the oldest first.
fn has_room(jobs: &mut HashMap<String, Job>, most: usize, what: &str) -> Result<(), EngineError> {
    while jobs.len() >= MAX_KEPT {
        let ended = jobs
            .iter()
            .filter_map(|(key, job)| Some((job.ended()?, key)));
        let Some(oldest) = ended.min().map(|(_, key)| key.clone()) else {
            break;
        };
        jobs.remove(&oldest);
    }
    if jobs.values().filter(|job| !job.is_finished()).count() < most {
        return Ok(());
    }
    Err(EngineError::Unreachable(format!(
        "{most} {what} are under way on this node"
    )))
}

impl Job {
    fn is_finished(&self) -> bool {
        self.task.is_finished() || locked(&self.result).is_some()
    }

    fn ended(&self) -> Option<Instant> {
        locked(&self.result).as_ref().map(|finished| finished.at)
    }

    fn is_stale(&self) -> bool {
        self.ended().is_some_and(|at| at.elapsed() > self.fresh)
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
        assert!(has_room(&mut jobs, 1, "jobs").is_err());
        assert!(has_room(&mut jobs, 2, "jobs").is_ok());
        assert!(matches!(
            told(&mut jobs, "runs"),
            Some(JobState::Running(None))
        ));
        assert!(told(&mut jobs, "late").is_none());
        assert!(matches!(told(&mut jobs, "told"), Some(JobState::Done(_))));
        assert!(told(&mut jobs, "told").is_none());
        let broken = Job::start(MAX_TIME, FRESH, |_| async { panic!("on purpose") });
        jobs.insert("broken".to_owned(), broken);
        while !jobs["broken"].task.is_finished() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(
            told(&mut jobs, "broken"),
            Some(JobState::Failed(_))
        ));
        for n in 0..2 * MAX_KEPT {
            jobs.insert(n.to_string(), ended(FRESH));
            while !jobs[&n.to_string()].is_finished() {
                tokio::task::yield_now().await;
            }
            has_room(&mut jobs, 2, "jobs").unwrap();
        }
        assert!(jobs.len() < MAX_KEPT && jobs.contains_key("runs"));
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
