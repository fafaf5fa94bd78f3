//! Jobs: requests that outlast a call of a driver, such as an image pull or a transfer. The host runs
//! them, and later calls poll them by key.

use super::message::{EngineError, EngineResponse, JobState};
use super::objects::ObjectTarget;
use super::outgoing::{Outgoing, ProgressSink};
use super::registries::Credentials;
use super::trace::traced;
use super::transfer::{self, ContentSource, TransferSource, TransferTarget};
use super::transport::Transport;
use bytes::Bytes;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Most jobs in progress on one node.
const MAX_JOBS: usize = 16;
/// Most transfers in progress on one node: each keeps a disk busy.
const MAX_TRANSFERS: usize = 4;
/// Most jobs of one node, those with an unread result included.
const MAX_KEPT: usize = 32;
/// Timeout of a transfer that makes progress.
const MAX_TRANSFER_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout of a job.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);
/// How long the result of a job is kept. A later poll starts the job again.
const FRESH: Duration = Duration::from_secs(60);
/// How long the result of a transfer is kept. A transfer is expensive, and its poll may come late.
const TRANSFER_FRESH: Duration = Duration::from_secs(60 * 60);
/// The kept end of an answer, bytes.
const TAIL: usize = 64 * 1024;
/// Longest line reported as progress, bytes.
const MAX_LINE: usize = 1024;

/// The jobs of one node.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<HashMap<String, RunningJob>>);

#[derive(Debug)]
struct RunningJob {
    task: JoinHandle<()>,
    /// How long its result is kept.
    fresh: Duration,
    tail: Arc<Tail>,
    result: Arc<Mutex<Option<Finished>>>,
}

#[derive(Debug)]
struct Finished {
    at: Instant,
    how: Result<EngineResponse, EngineError>,
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Jobs {
    /// The state of the job with this request, which starts if there is none. A result is returned once.
    pub fn poll(&self, outgoing: Outgoing, transport: &Transport) -> Result<JobState, EngineError> {
        let key = format!("{outgoing:?}");
        let mut jobs = self.0.lock();
        if let Some(state) = take_state(&mut jobs, &key) {
            return Ok(state);
        }
        has_room(&mut jobs, MAX_JOBS, "jobs")?;
        let transport = transport.clone();
        let tail = Tail {
            hidden: outgoing.credentials.clone(),
            ..Tail::default()
        };
        let job = RunningJob::start(MAX_TIME, FRESH, tail, |tail| async move {
            let (method, path) = (outgoing.method.clone(), outgoing.path.clone());
            let hidden = outgoing.credentials.clone();
            let answer = traced(&method, &path, transport.stream(outgoing, &*tail)).await?;
            // A registry, or a proxy before it, may repeat the account in an error.
            Ok(match hidden {
                Some(credentials) => credentials.hide_in(answer),
                None => answer,
            })
        });
        jobs.insert(key, job);
        Ok(JobState::Running(None))
    }

    /// Begins a transfer, in place of an earlier one with this key.
    pub fn transfer(
        &self,
        key: &str,
        source: ContentSource,
        target: TransferTarget,
    ) -> Result<(), EngineError> {
        self.begin_transfer(key, |tail| transfer::carry(source, target, tail))
    }

    /// Begins a transfer to an object, in place of an earlier one with this key.
    pub fn transfer_out(
        &self,
        key: &str,
        source: TransferSource,
        target: ObjectTarget,
    ) -> Result<(), EngineError> {
        self.begin_transfer(key, |tail| transfer::carry_out(source, target, tail))
    }

    fn begin_transfer<F>(
        &self,
        key: &str,
        transfer: impl FnOnce(Arc<Tail>) -> F,
    ) -> Result<(), EngineError>
    where
        F: Future<Output = Result<EngineResponse, EngineError>> + Send + 'static,
    {
        let mut jobs = self.0.lock();
        jobs.remove(key);
        has_room(&mut jobs, MAX_TRANSFERS, "transfers")?;
        let job = RunningJob::start(MAX_TRANSFER_TIME, TRANSFER_FRESH, Tail::default(), transfer);
        jobs.insert(key.to_owned(), job);
        Ok(())
    }

    /// The state of the job with this key, if there is one. A result is returned once.
    pub fn state(&self, key: &str) -> Option<JobState> {
        take_state(&mut self.0.lock(), key)
    }

    /// Ends the job with this key, if there is one.
    pub fn end(&self, key: &str) {
        self.0.lock().remove(key);
    }
}

/// The state of the job with this key. Drops results that were not read in time.
fn take_state(jobs: &mut HashMap<String, RunningJob>, key: &str) -> Option<JobState> {
    jobs.retain(|_, job| !job.is_stale());
    let job = jobs.get(key)?;
    let is_over = job.task.is_finished();
    let result = job.result.lock().take();
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

/// Fails if `most` jobs are in progress. Drops the oldest unread results beyond [`MAX_KEPT`].
fn has_room(
    jobs: &mut HashMap<String, RunningJob>,
    most: usize,
    what: &str,
) -> Result<(), EngineError> {
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
        "{most} {what} are in progress on this node"
    )))
}

impl RunningJob {
    fn is_finished(&self) -> bool {
        self.task.is_finished() || self.result.lock().is_some()
    }

    fn ended(&self) -> Option<Instant> {
        self.result.lock().as_ref().map(|finished| finished.at)
    }

    fn is_stale(&self) -> bool {
        self.ended().is_some_and(|at| at.elapsed() > self.fresh)
    }

    fn start<F>(
        most: Duration,
        fresh: Duration,
        tail: Tail,
        work: impl FnOnce(Arc<Tail>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<EngineResponse, EngineError>> + Send + 'static,
    {
        let tail = Arc::new(tail);
        let result = Arc::new(Mutex::new(None));
        let (work, slot) = (work(Arc::clone(&tail)), Arc::clone(&result));
        let run = async move {
            let answer = tokio::time::timeout(most, work).await;
            *slot.lock() = Some(Finished {
                at: Instant::now(),
                how: answer.unwrap_or(Err(EngineError::Timeout)),
            });
        };
        let task = tokio::spawn(run.in_current_span());
        Self {
            task,
            fresh,
            tail,
            result,
        }
    }
}

/// The end of an answer while it arrives.
#[derive(Debug, Default)]
struct Tail {
    end: Mutex<End>,
    /// The account that no line may show.
    hidden: Option<Arc<Credentials>>,
}

#[derive(Debug, Default)]
struct End {
    bytes: Vec<u8>,
    /// Whether bytes before it are gone.
    is_cut: bool,
}

impl End {
    fn cut_to(&mut self, length: usize) {
        let surplus = self.bytes.len().saturating_sub(length);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }
}

impl ProgressSink for Tail {
    fn chunk(&self, bytes: &[u8]) {
        let mut end = self.end.lock();
        end.bytes.extend_from_slice(bytes);
        // Cut rarely, so that not every small piece moves the rest.
        if end.bytes.len() > 2 * TAIL {
            end.cut_to(TAIL);
        }
    }

    fn kept(&self) -> Bytes {
        let mut end = self.end.lock();
        end.cut_to(TAIL);
        let mut kept = end.bytes.as_slice();
        if end.is_cut && self.hidden.is_some() {
            // The first line may begin within the account, which would not be found.
            let next = kept.iter().position(|byte| *byte == b'\n');
            kept = next.and_then(|next| kept.get(next..)).unwrap_or_default();
        }
        Bytes::copy_from_slice(kept)
    }
}

impl Tail {
    /// The last complete line.
    fn line(&self) -> Option<String> {
        let kept = self.end.lock();
        let end = kept.bytes.iter().rposition(|byte| *byte == b'\n')?;
        let whole = kept.bytes.get(..end)?;
        let before = whole.iter().rposition(|byte| *byte == b'\n');
        let line = whole.get(before.map_or(0, |at| at + 1)..)?;
        let line = match &self.hidden {
            Some(_) if before.is_none() && kept.is_cut => return None,
            Some(credentials) => Cow::from(credentials.hide(line)),
            None => Cow::from(line),
        };
        let line = line.get(..line.len().min(MAX_LINE))?;
        Some(String::from_utf8_lossy(line).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registries::{Registries, RegistryAccount};
    use wharf_domain::image::Registry;
    use wharf_domain::secret::SecretText;

    fn ended(fresh: Duration) -> RunningJob {
        let response = EngineResponse {
            status: 200,
            headers: Vec::new(),
            body: Bytes::new(),
        };
        RunningJob::start(MAX_TIME, fresh, Tail::default(), |_| async { Ok(response) })
    }

    #[tokio::test]
    async fn a_result_is_told_once_and_for_a_while_and_takes_no_room() {
        let never = || {
            RunningJob::start(MAX_TIME, TRANSFER_FRESH, Tail::default(), |_| {
                std::future::pending()
            })
        };
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
            take_state(&mut jobs, "runs"),
            Some(JobState::Running(None))
        ));
        assert!(take_state(&mut jobs, "late").is_none());
        assert!(matches!(
            take_state(&mut jobs, "told"),
            Some(JobState::Done(_))
        ));
        assert!(take_state(&mut jobs, "told").is_none());
        let broken = RunningJob::start(MAX_TIME, FRESH, Tail::default(), |_| async {
            panic!("on purpose")
        });
        jobs.insert("broken".to_owned(), broken);
        while !jobs["broken"].task.is_finished() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(
            take_state(&mut jobs, "broken"),
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

    #[test]
    fn no_line_shows_an_account_wherever_the_tail_begins() {
        let account = RegistryAccount {
            registry: Registry::OfEngine,
            user: "wharf".to_owned(),
            password: SecretText::new("a-long-password"),
        };
        let registries = Registries::default();
        registries.replace(&[account]);
        let line = b"{\"error\":\"a-long-password\"}\n";
        for surplus in 0..=2 * line.len() {
            let tail = Tail {
                hidden: registries.find(&Registry::OfEngine),
                ..Tail::default()
            };
            tail.chunk(line);
            assert_eq!(tail.line().as_deref(), Some("{\"error\":\"(secret)\"}"));
            tail.chunk(line);
            tail.chunk(&vec![b'x'; TAIL - 2 * line.len() - 1]);
            tail.chunk(b"\n");
            tail.chunk(&vec![b'y'; surplus]);
            let credentials = tail.hidden.clone().unwrap();
            let kept = credentials.hide(&tail.kept());
            assert!(
                !kept
                    .windows(5)
                    .any(|part| b"a-long-password".windows(5).any(|of| of == part))
            );
            assert!(kept.ends_with(&vec![b'y'; surplus]));
        }
    }
}
