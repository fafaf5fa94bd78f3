//! The access of one call to its node's engine. A driver names a request, and the host writes and sends it.

use super::archive::{self, Hashes};
use super::message::{
    DEFAULT_TIMEOUT, EngineError, EngineRequest, EngineResponse, JobState, WrittenRequest,
};
use super::node::EngineNode;
use super::outgoing::Outgoing;
use super::trace::traced;
use super::transfer::{ContentSource, TransferSource, TransferTarget};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, warn};
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::InstanceSecrets;
use wharf_requests::{CallScope, Purpose, Rendered, RenderedBody, RequestRefusal, SnapshotPurpose};

/// Subtracted from the call's deadline, so that the guest has time to return.
const MARGIN: Duration = Duration::from_millis(250);
/// Refusals of one call that are logged; more would let a guest fill the log.
const LOGGED_REFUSALS: u32 = 20;
/// The length of noise, in bytes.
const NOISE: usize = 10 << 20;
/// Logged characters of a name, and of the arguments.
const MAX_LOGGED: usize = 500;

/// The engine, as a guest reaches it during one call.
#[derive(Debug)]
pub struct EngineAccess {
    node: Arc<EngineNode>,
    scope: CallScope,
    secrets: InstanceSecrets,
    hashes: Hashes,
    deadline: Instant,
    refusals: u32,
}

impl EngineAccess {
    /// The access of one call. Only a creation has `secrets`.
    pub fn new(
        node: Arc<EngineNode>,
        scope: CallScope,
        secrets: InstanceSecrets,
        deadline: Instant,
    ) -> Self {
        Self {
            node,
            scope,
            secrets,
            hashes: Hashes::new(),
            deadline,
            refusals: 0,
        }
    }

    /// Writes and sends a request, and learns from its answer.
    pub async fn send(&mut self, request: &EngineRequest) -> Result<EngineResponse, EngineError> {
        let outgoing = self.write(request, Purpose::Send)?;
        let (method, path) = (outgoing.method.clone(), outgoing.path.clone());
        let timeout = request.timeout.unwrap_or(DEFAULT_TIMEOUT).min(self.left());
        let answer = tokio::time::timeout(timeout, self.node.transport.send(outgoing));
        let answer = async { answer.await.unwrap_or(Err(EngineError::Timeout)) };
        let answer = traced(&method, &path, answer).await;
        if let Ok(response) = &answer {
            self.node.requests.learn(
                &mut self.scope,
                &request.name,
                &request.arguments,
                response.status,
                &response.body,
            );
        }
        answer
    }

    /// Writes a request, and does not send it.
    pub fn show(&mut self, request: &EngineRequest) -> Result<WrittenRequest, EngineError> {
        let rendered = self.render(request, Purpose::Show)?;
        Ok(WrittenRequest {
            method: rendered.method.to_string(),
            target: rendered.target,
            body: match rendered.body {
                RenderedBody::Json(text) => Some(text),
                RenderedBody::None
                | RenderedBody::Archive(_)
                | RenderedBody::File(_)
                | RenderedBody::Noise => None,
            },
        })
    }

    /// Starts a long request or reports its progress. Equal requests on a node are one job.
    pub fn job(&mut self, request: &EngineRequest) -> Result<JobState, EngineError> {
        let outgoing = self.write(request, Purpose::Job)?;
        self.node.jobs.poll(outgoing, &self.node.transport)
    }

    /// Begins a transfer for the call's instance, snapshot or volume, or offers the instance's content to the engine of
    /// another node.
    pub fn begin_transfer(&mut self, request: &EngineRequest) -> Result<(), EngineError> {
        let key = self.transfer_key()?;
        let EngineRequest {
            name, arguments, ..
        } = request;
        let targets = self.node.requests.transfer(&self.scope, name, arguments);
        let targets = self.logged(request, targets)?;
        let (node, is_volume) = (&self.node, self.scope.volume.is_some());
        let own = |targets| TransferSource {
            transport: node.transport.clone(),
            targets,
            is_volume,
        };
        let sent = self.sent();
        let source = match (targets.source, &targets.write) {
            (Some(source), None) if let Some(sent) = sent => {
                debug!(of = key, "the content of a snapshot or a volume leaves");
                let object = node.offers.take_object(sent)?;
                return node.transfers.transfer_out(&key, own(source), object);
            }
            (Some(source), None) => {
                debug!(instance = key, "content is offered to another engine");
                return node.offers.put(key, node.kind.clone(), own(source));
            }
            (Some(source), Some(_)) => ContentSource::Engine(own(source)),
            (None, _) => node.offers.take(&key, &node.kind)?,
        };
        let write = targets.write.unwrap_or_default();
        debug!(instance = key, "transfer begins");
        let target = TransferTarget {
            transport: node.transport.clone(),
            write,
            below: targets.below,
            image: targets.image,
            kept: targets.kept,
            is_volume,
        };
        node.transfers.transfer(&key, source, target)
    }

    /// The progress of the call's transfer.
    pub fn transfer_state(&self) -> Result<Option<JobState>, EngineError> {
        Ok(self.node.transfers.state(&self.transfer_key()?))
    }

    /// Ends the call's transfer.
    pub fn end_transfer(&self) -> Result<(), EngineError> {
        self.node.transfers.end(&self.transfer_key()?);
        Ok(())
    }

    /// The key of the call's transfer: the snapshot or the volume, or else the instance. A call that changes nothing
    /// has none.
    fn transfer_key(&self) -> Result<String, EngineError> {
        let volume = self
            .scope
            .volume
            .as_ref()
            .map(|volume| volume.id.to_string());
        let sent = self.sent().map(|sent| sent.to_string());
        let key = sent.or(volume).or_else(|| self.instance());
        key.filter(|_| self.scope.changes).ok_or_else(|| {
            EngineError::Refused("a transfer in a call that changes nothing of its own".into())
        })
    }

    /// The snapshot whose content the call sends or which it removes, or the volume whose content it sends.
    fn sent(&self) -> Option<InstanceId> {
        if let Some(volume) = self.scope.volume.as_ref().filter(|volume| volume.is_sent) {
            return Some(volume.id.into());
        }
        let snapshot = self.scope.snapshot.filter(|snapshot| {
            matches!(
                snapshot.purpose,
                SnapshotPurpose::Send | SnapshotPurpose::Drop
            )
        });
        snapshot.map(|snapshot| snapshot.of.snapshot.into())
    }

    /// The id of the call's instance.
    fn instance(&self) -> Option<String> {
        let subject = self.scope.subject.as_ref();
        subject.map(|subject| subject.tag.instance.to_string())
    }

    fn left(&self) -> Duration {
        self.deadline
            .saturating_duration_since(Instant::now())
            .saturating_sub(MARGIN)
    }

    /// Writes a request with its body, secrets of files and credentials included.
    fn write(
        &mut self,
        request: &EngineRequest,
        purpose: Purpose,
    ) -> Result<Outgoing, EngineError> {
        let rendered = self.render(request, purpose)?;
        let body = match rendered.body {
            RenderedBody::None => None,
            RenderedBody::Noise => Some(("application/octet-stream", noise()?)),
            RenderedBody::Json(json) => Some(("application/json", json.into())),
            RenderedBody::Archive(files) => {
                let tar = archive::build(&files, &self.secrets, &mut self.hashes)?;
                Some(("application/x-tar", tar))
            }
            RenderedBody::File(file) => {
                let content = archive::content(&file, &self.secrets, &mut self.hashes)?;
                Some(("application/octet-stream", content))
            }
        };
        let registry = rendered.credentials.as_ref();
        Ok(Outgoing {
            method: rendered.method,
            path: rendered.target,
            headers: rendered.headers,
            credentials: registry.and_then(|registry| self.node.registries.find(registry)),
            body,
        })
    }

    fn render(
        &mut self,
        request: &EngineRequest,
        purpose: Purpose,
    ) -> Result<Rendered, EngineError> {
        let EngineRequest {
            name, arguments, ..
        } = request;
        let requests = &self.node.requests;
        let rendered = requests.render(&self.scope, name, arguments, purpose);
        self.logged(request, rendered)
    }

    /// Logs a request as written, or its refusal.
    fn logged<T>(
        &mut self,
        request: &EngineRequest,
        written: Result<T, RequestRefusal>,
    ) -> Result<T, EngineError> {
        let EngineRequest {
            name, arguments, ..
        } = request;
        if written.is_ok() {
            debug!(
                request = name,
                arguments = shortened(&format!("{arguments:?}")),
                "a driver's request"
            );
        }
        written.map_err(|refusal| {
            let error = EngineError::Refused(refusal.0);
            self.refusals = self.refusals.saturating_add(1);
            if self.refusals <= LOGGED_REFUSALS {
                warn!(
                    request = shortened(name),
                    instance = self.instance(),
                    error = shortened(&error.to_string()),
                    last_logged = self.refusals == LOGGED_REFUSALS,
                    "a driver's request was not sent"
                );
            }
            error
        })
    }
}

/// Bytes that no file system stores in less.
fn noise() -> Result<Bytes, EngineError> {
    let mut bytes = vec![0; NOISE];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Refused(error.to_string()))?;
    Ok(bytes.into())
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_LOGGED).collect()
}
