//! Requests that a driver names: the file of its kind of engine has their form, and the host writes them.

use super::access::{Access, LOGGED_REFUSALS, is_logged};
use super::archive;
use super::message::{DEFAULT_TIMEOUT, EngineError, JobState, Response, Transfer};
use super::outgoing::Outgoing;
use std::time::Duration;
use tracing::{debug, warn};
use wharf_requests::{Body, Purpose, Rendered};

/// Logged characters of a name, and of the arguments.
const MAX_LOGGED: usize = 500;

/// A request that a driver names.
#[derive(Debug, Clone)]
pub struct NamedRequest {
    /// Its name in the request file.
    pub name: String,
    /// Names and values of its arguments.
    pub arguments: Vec<(String, String)>,
    /// Timeout for the whole answer.
    pub timeout: Option<Duration>,
}

/// A request as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRequest {
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// JSON body; none if the body is empty or has files.
    pub body: Option<String>,
}

impl Access {
    /// Writes and sends a request.
    pub async fn send_named(&mut self, request: &NamedRequest) -> Result<Response, EngineError> {
        let outgoing = self.write(request, Purpose::Send)?;
        let timeout = request.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let answer = self.exchange(outgoing, timeout).await;
        if let (Ok(response), Some(requests)) = (&answer, &self.node.requests) {
            requests.learn(
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
    pub fn show(&mut self, request: &NamedRequest) -> Result<WrittenRequest, EngineError> {
        let rendered = self.render(request, Purpose::Show)?;
        Ok(WrittenRequest {
            method: rendered.method.to_string(),
            target: rendered.target,
            body: match rendered.body {
                Body::Json(text) => Some(text),
                Body::None | Body::Archive(_) | Body::File(_) => None,
            },
        })
    }

    /// Starts a long request or reports its progress. Equal requests on a node are one job.
    pub fn job_named(&mut self, request: &NamedRequest) -> Result<JobState, EngineError> {
        let outgoing = self.write(request, Purpose::Job)?;
        self.node.jobs.poll_equal(outgoing, &self.node.transport)
    }

    /// Begins the transfer of the call's instance that a driver names.
    pub fn begin_named_transfer(&mut self, request: &NamedRequest) -> Result<(), EngineError> {
        let key = self.transfer_key()?;
        let rendered = self.render(request, Purpose::Transfer)?;
        let Some(targets) = rendered.transfer else {
            return Err(EngineError::Refused("this request is no transfer".into()));
        };
        let transfer = Transfer {
            read: targets.read,
            changes: targets.changes,
            write: targets.write,
        };
        debug!(instance = key, "transfer begins");
        self.node
            .transfers
            .transfer(&key, transfer, &self.node.transport)
    }

    /// Writes a request with its body, secrets of files included.
    fn write(&mut self, request: &NamedRequest, purpose: Purpose) -> Result<Outgoing, EngineError> {
        let rendered = self.render(request, purpose)?;
        let body = match rendered.body {
            Body::None => None,
            Body::Json(json) => Some(("application/json", json.into())),
            // Its key would have the secrets of the files.
            Body::Archive(_) | Body::File(_) if purpose == Purpose::Job => {
                return Err(EngineError::Refused("a job has no files".into()));
            }
            Body::Archive(files) => {
                let tar = archive::build(&files, &self.secrets, &mut self.hashes)?;
                Some(("application/x-tar", tar))
            }
            Body::File(file) => {
                let content = archive::content(&file, &self.secrets, &mut self.hashes)?;
                Some(("application/octet-stream", content))
            }
        };
        Ok(Outgoing {
            method: rendered.method,
            path: rendered.target,
            headers: rendered.headers,
            body,
        })
    }

    fn render(
        &mut self,
        request: &NamedRequest,
        purpose: Purpose,
    ) -> Result<Rendered, EngineError> {
        let NamedRequest {
            name, arguments, ..
        } = request;
        debug!(
            request = shortened(name),
            arguments = shortened(&format!("{arguments:?}")),
            ?purpose,
            "a driver's request"
        );
        let rendered = match &self.node.requests {
            Some(requests) => requests
                .render(&self.scope, name, arguments, purpose)
                .map_err(|refusal| refusal.0),
            None => Err("this kind of engine has no request file".to_owned()),
        };
        rendered.map_err(|why| {
            let error = EngineError::Refused(why);
            if is_logged(&mut self.refusals) {
                warn!(
                    request = shortened(name),
                    instance = self.instance(),
                    %error,
                    last_logged = self.refusals == LOGGED_REFUSALS,
                    "a driver's request was not sent"
                );
            }
            error
        })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_LOGGED).collect()
}
