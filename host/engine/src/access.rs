//! The access of one call to its node's engine.

use super::archive::{self, Hashes};
use super::message::{
    Body, DEFAULT_TIMEOUT, EngineError, JobState, MAX_JSON, Request, Response, Transfer,
};
use super::node::EngineNode;
use super::outgoing::Outgoing;
use super::policy::{CheckedRequest, Refusal};
use super::trace::traced;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, warn};
use wharf_domain::secret::Secrets;
use wharf_requests::CallScope;

/// Subtracted from the call's deadline, so that the guest has time to return.
const MARGIN: Duration = Duration::from_millis(250);
/// Refusals of one call that are logged; more would let a guest fill the log.
pub(super) const LOGGED_REFUSALS: u32 = 20;
/// The refusal of a request that its driver writes, where the host has a request file.
const NAMED_ONLY: &str = "requests to this kind of engine are named";
/// Logged characters of a path.
const MAX_LOGGED_PATH: usize = 500;

/// The engine, as a guest reaches it during one call.
#[derive(Debug)]
pub struct Access {
    pub(super) node: Arc<EngineNode>,
    pub(super) scope: CallScope,
    pub(super) secrets: Secrets,
    pub(super) hashes: Hashes,
    deadline: Instant,
    pub(super) refusals: u32,
    refused_transfers: u32,
}

impl Access {
    /// The access of one call. Only a creation has `secrets`.
    pub fn new(
        node: Arc<EngineNode>,
        scope: CallScope,
        secrets: Secrets,
        deadline: Instant,
    ) -> Self {
        Self {
            node,
            scope,
            secrets,
            hashes: Hashes::new(),
            deadline,
            refusals: 0,
            refused_transfers: 0,
        }
    }

    /// Sends one request, if the policy allows it.
    pub async fn send(&mut self, request: Request) -> Result<Response, EngineError> {
        let timeout = request.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let (outgoing, rule) = self.prepare(request, false)?;
        let answer = self.exchange(outgoing, timeout).await;
        if let (Ok(response), Some(policy)) = (&answer, &self.node.policy) {
            policy.learn(&mut self.scope, &rule, response);
        }
        answer
    }

    /// Sends a request and reads its answer, within the time of the call.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Response, EngineError> {
        let (method, path) = (outgoing.method.clone(), outgoing.path.clone());
        let answer = self.node.transport.send(outgoing);
        let answer = tokio::time::timeout(timeout.min(self.left()), answer);
        let answer = async { answer.await.unwrap_or(Err(EngineError::Timeout)) };
        traced(&method, &path, answer).await
    }

    /// Starts a long request or reports its progress.
    pub fn job(&mut self, key: &str, request: Request) -> Result<JobState, EngineError> {
        let (outgoing, _) = self.prepare(request, true)?;
        self.node.jobs.poll(key, outgoing, &self.node.transport)
    }

    /// Begins the transfer of the call's instance, if the policy allows it.
    pub fn begin_transfer(&mut self, transfer: Transfer) -> Result<(), EngineError> {
        let key = self.transfer_key()?;
        let checked = match &self.node.policy {
            Some(policy) => policy.check_transfer(&self.scope, &transfer),
            None => Err(Refusal(NAMED_ONLY.to_owned())),
        };
        if let Err(refusal) = checked {
            if is_logged(&mut self.refused_transfers) {
                let last_logged = self.refused_transfers == LOGGED_REFUSALS;
                warn!(
                    instance = key,
                    why = refusal.0,
                    last_logged,
                    "a driver's transfer was not begun"
                );
            }
            return Err(EngineError::Refused(refusal.0));
        }
        debug!(instance = key, "transfer begins");
        self.node
            .transfers
            .transfer(&key, transfer, &self.node.transport)
    }

    /// The progress of the transfer of the call's instance.
    pub fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Ok(self.node.transfers.state(&self.transfer_key()?))
    }

    /// Ends the transfer of the call's instance.
    pub fn end_transfer(&self) -> Result<(), EngineError> {
        self.node.transfers.end(&self.transfer_key()?);
        Ok(())
    }

    /// The key of the transfer of the call's instance. A call that changes nothing has none.
    pub(super) fn transfer_key(&self) -> Result<String, EngineError> {
        let subject = self.scope.subject.as_ref().filter(|_| self.scope.changes);
        let subject = subject.ok_or_else(|| {
            EngineError::Refused("a transfer in a call that changes no instance".into())
        })?;
        Ok(subject.tag.instance.to_string())
    }

    fn left(&self) -> Duration {
        self.deadline
            .saturating_duration_since(Instant::now())
            .saturating_sub(MARGIN)
    }

    /// Checks the request and builds its body. A JSON body is serialised from the checked form, so that
    /// the engine cannot read the text in another way than the policy. The rule that allows the request
    /// learns from its answer.
    fn prepare(
        &mut self,
        mut request: Request,
        job: bool,
    ) -> Result<(Outgoing, String), EngineError> {
        let checked = match self.check(&request, job) {
            Ok(checked) => checked,
            Err(error) => {
                self.note_refusal(&request, &error);
                return Err(error);
            }
        };
        let body = match (request.body, checked.body) {
            (Body::Empty, _) => None,
            (Body::Json(_), None) => None,
            (Body::Json(_), Some(json)) => Some(("application/json", json.into())),
            (Body::Archive(files), _) => {
                let tar = archive::build(&files, &self.secrets, &mut self.hashes)?;
                Some(("application/x-tar", tar))
            }
            (Body::File(file), _) => {
                let content = archive::content(&file, &self.secrets, &mut self.hashes)?;
                Some(("application/octet-stream", content))
            }
        };
        request.headers.extend(checked.headers);
        let outgoing = Outgoing {
            method: request.method,
            path: request.path,
            headers: request.headers,
            body,
        };
        Ok((outgoing, checked.rule))
    }

    fn note_refusal(&mut self, request: &Request, error: &EngineError) {
        if !is_logged(&mut self.refusals) {
            return;
        }
        let path: String = request.path.chars().take(MAX_LOGGED_PATH).collect();
        warn!(
            method = %request.method,
            path,
            instance = self.instance(),
            %error,
            last_logged = self.refusals == LOGGED_REFUSALS,
            "a driver's request was not sent"
        );
    }

    fn check(&self, request: &Request, job: bool) -> Result<CheckedRequest, EngineError> {
        if let Body::Json(json) = &request.body
            && json.len() > MAX_JSON
        {
            return Err(EngineError::Refused(format!(
                "a JSON body of more than {MAX_JSON} bytes"
            )));
        }
        match &self.node.policy {
            Some(policy) => policy.check(&self.scope, request, job),
            None => Err(Refusal(NAMED_ONLY.to_owned())),
        }
        .map_err(|refusal| EngineError::Refused(refusal.0))
    }

    /// The id of the call's instance, for the log.
    pub(super) fn instance(&self) -> Option<String> {
        let subject = self.scope.subject.as_ref();
        subject.map(|subject| subject.tag.instance.to_string())
    }
}

/// Counts a refusal. True if it is to be logged.
pub(super) fn is_logged(refusals: &mut u32) -> bool {
    *refusals = refusals.saturating_add(1);
    *refusals <= LOGGED_REFUSALS
}
