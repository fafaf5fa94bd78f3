//! One request from its head to its answer: the order of the checks, the log line, the request id.

use super::body::Intake;
use super::connection::Handle;
use super::docs::Docs;
use super::line::Line;
use super::request_id::{RequestIds, X_REQUEST_ID};
use super::respond::{self, Refusal, Response};
use super::router::{Endpoint, Found, Router, decode};
use super::{auth, gzip, media_type};
use crate::api::{self, Api, Reply};
use crate::app::{Caller, Selector};
use crate::domain::error::Error;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HOST, HeaderValue};
use http::request::Parts;
use http::{Request, Version};
use hyper::body::{Body, Incoming};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tracing::Instrument;

/// Everything that answers requests.
pub(super) struct Handler {
    pub(super) api: Api,
    pub(super) router: Router,
    pub(super) docs: Docs,
    pub(super) ids: RequestIds,
    pub(super) body_time: Duration,
    pub(super) max_requests: usize,
    pub(super) running: AtomicUsize,
}

/// Why a request was not done.
enum Failure {
    Refused(Refusal),
    Failed(Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Handle for Handler {
    async fn handle(&self, request: Request<Incoming>) -> Response {
        self.respond(request).await
    }
}

impl Handler {
    async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let mut line = Line::new(self.ids.of(&parts.headers), parts.method.clone());
        let mut intake = Intake::new(body);
        let answer = match self.place() {
            Ok(_place) => self.answer(&parts, &mut intake, &mut line).await,
            Err(refusal) => Err(refusal.into()),
        };
        let mut response = match answer {
            Ok(response) if gzip::is_worth_it(&response) => {
                Box::pin(gzip::compress(gzip::accepted(&parts.headers), response)).await
            }
            Ok(response) => response,
            Err(Failure::Refused(refusal)) => respond::refusal(&refusal),
            Err(Failure::Failed(error)) => {
                log_error(line.id(), &error);
                respond::error(&error)
            }
        };
        if !intake.ended() && !leave_body(&parts, &mut intake).await {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        let id = line.write(response.status().as_u16());
        response.headers_mut().insert(X_REQUEST_ID, id);
        response
    }

    /// A place among the requests under way.
    fn place(&self) -> Result<Place<'_>, Refusal> {
        let place = Place(&self.running);
        if self.running.fetch_add(1, Ordering::Relaxed) < self.max_requests {
            Ok(place)
        } else {
            Err(Refusal::Busy)
        }
    }

    async fn answer<B>(
        &self,
        parts: &Parts,
        intake: &mut Intake<B>,
        line: &mut Line,
    ) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let path = parts.uri.path();
        check_host(parts)?;
        let found = self.router.find(path);
        let (route, slashed) = match &found {
            Some(found) => (Some(found.route), true),
            None => (self.router.find_slashed(path), false),
        };
        line.route = route.map(|r| r.template);
        let public = route.map_or(path != "/api" && !path.starts_with("/api/"), |r| r.public);
        let caller = if public {
            None
        } else {
            let key = auth::bearer(&parts.headers);
            let caller = key.and_then(|key| self.api.app().authenticate(key, line.id().into()));
            let caller = caller.ok_or(Refusal::Unauthorized)?;
            line.user = Some(caller.user);
            Some(caller)
        };
        let route = route.ok_or(Refusal::UnknownPath)?;
        let endpoint = route.endpoint(&parts.method).map_err(Refusal::Method)?;
        if !slashed {
            let query = parts
                .uri
                .query()
                .map(|q| format!("?{q}"))
                .unwrap_or_default();
            return Err(Refusal::Slash(format!("{path}/{query}")).into());
        }
        if endpoint.takes_json() && !media_type::is_json(&parts.headers) {
            return Err(Refusal::MediaType.into());
        }
        let body = intake.read(self.body_time).await?;
        let segment = found.map_or("", |Found { segment, .. }| segment);
        match caller {
            Some(caller) => {
                let span = tracing::error_span!("request", id = line.id());
                let run = self.run(endpoint, &caller, segment, &body);
                let reply = run.instrument(span).await?;
                Ok(respond::reply(reply))
            }
            None => self.run_public(endpoint, segment, parts),
        }
    }

    async fn run(
        &self,
        endpoint: Endpoint,
        caller: &Caller,
        segment: &str,
        body: &[u8],
    ) -> Result<Reply, Failure> {
        let api = &self.api;
        let one = || Selector::parse(&decode(segment));
        // What is boxed would be room in every request's future: GET and LIST do without.
        let reply = match endpoint {
            Endpoint::List => api::list::run(api, caller),
            Endpoint::Create => Box::pin(api::create::run(api, caller, body)).await,
            Endpoint::Get => api::get::run(api, caller, &one()),
            Endpoint::Update => Box::pin(api::update::run(api, caller, &one(), body)).await,
            Endpoint::Delete => Box::pin(api::delete::run(api, caller, &one())).await,
            Endpoint::Stop => Box::pin(api::stop::run(api, caller, &one())).await,
            Endpoint::Restart => Box::pin(api::restart::run(api, caller, &one())).await,
            Endpoint::AddPort => Box::pin(api::ports::add(api, caller, &one(), body)).await,
            Endpoint::RemovePort => Box::pin(api::ports::remove(api, caller, &one(), body)).await,
            Endpoint::Stats => Box::pin(api::stats::run(api, caller, &one())).await,
            Endpoint::Health
            | Endpoint::Ready
            | Endpoint::OpenApi
            | Endpoint::Docs
            | Endpoint::DocsFile => return Err(Refusal::UnknownPath.into()),
        };
        Ok(reply?)
    }

    fn run_public(
        &self,
        endpoint: Endpoint,
        segment: &str,
        parts: &Parts,
    ) -> Result<Response, Failure> {
        Ok(match endpoint {
            Endpoint::Health => respond::ok(&json!({ "status": "ok" })),
            Endpoint::Ready if self.api.app().ready() => respond::ok(&json!({ "status": "ready" })),
            Endpoint::Ready => return Err(Refusal::NotReady.into()),
            Endpoint::OpenApi => self.docs.document(),
            Endpoint::Docs => Docs::page(),
            Endpoint::DocsFile => Docs::file(segment, &parts.headers)?,
            // These are not public, and never get here.
            _ => return Err(Refusal::Unauthorized.into()),
        })
    }
}

/// Given back when the request is over, however it ends.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which host is meant must be clear in HTTP/1.1; HTTP/2 has it in `:authority`.
fn check_host(parts: &Parts) -> Result<(), Refusal> {
    let hosts = parts.headers.get_all(HOST).iter().count();
    let right = match parts.version {
        Version::HTTP_11 => hosts == 1,
        _ => hosts <= 1,
    };
    if right { Ok(()) } else { Err(Refusal::Host) }
}

/// Gets rid of a body that the answer did not need. False if the connection cannot go on.
async fn leave_body<B>(parts: &Parts, intake: &mut Intake<B>) -> bool
where
    B: Body<Data = Bytes> + Unpin,
{
    // HTTP/2 ends the one stream; and who waits for a "100 Continue" has sent nothing.
    if parts.version == Version::HTTP_2 {
        return true;
    }
    !parts.headers.contains_key(EXPECT) && intake.drain().await
}

/// What clients are not told.
fn log_error(id: &str, error: &Error) {
    match error {
        Error::Internal(_) => tracing::error!(id, error = %error.chain(), "internal error"),
        Error::NodeUnreachable(text) => tracing::warn!(id, "node out of reach: {text}"),
        Error::NotStarted(text) => tracing::warn!(id, "not started: {text}"),
        Error::Overloaded => tracing::warn!(id, "overloaded"),
        _ => {}
    }
}
