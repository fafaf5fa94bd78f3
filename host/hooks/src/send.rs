//! Sends one request to the address of a webhook.

use super::Webhooks;
use super::next_step::{Attempted, DeliveryJob};
use async_trait::async_trait;
use rustls::ClientConfig;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;
use wharf_domain::error::{causes, chain};
use wharf_outbound::reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use wharf_outbound::reqwest::{self, Method};
use wharf_outbound::{CheckedClient, Refused};

/// The time for a whole request. Receivers that need longer answer first and work afterwards.
const LIMIT: Duration = Duration::from_secs(20);
/// The words for the user about that limit.
const LATE: &str = "the receiver did not answer in time";

/// Requests at once of one user, so that slow receivers of a user delay no other user.
const OF_USER: usize = 8;
/// Requests at once of all users, which bounds memory and sockets.
const AT_ONCE: usize = 1024;

/// The requests of one user at once.
pub(super) type UserPermits = Arc<Semaphore>;

/// The permits of a user.
pub(super) fn permits_of_user() -> UserPermits {
    Arc::new(Semaphore::new(OF_USER))
}

/// A request to a receiver.
#[derive(Debug)]
pub struct HookRequest {
    pub url: Url,
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub id: String,
    pub timestamp: i64,
    pub signatures: String,
    pub body: Vec<u8>,
}

/// The answer of a receiver, whose body is not read.
#[derive(Debug, Clone, Copy)]
pub struct HookAnswer {
    pub status: u16,
    /// The pause that it asks for.
    pub retry_after: Option<Duration>,
}

/// The receivers of requests: those in the network, or those of a simulation. A call may be dropped.
#[async_trait]
pub trait HookReceivers: Send + Sync {
    /// Sends a request. The reason for no answer is in words for the user.
    async fn post(&self, request: HookRequest) -> Result<HookAnswer, &'static str>;
}

/// Sends requests; clones share their limits.
#[derive(Clone)]
pub(super) struct Sender {
    webhooks: Arc<Webhooks>,
    receivers: Arc<dyn HookReceivers>,
    permits: Arc<Semaphore>,
}

impl Sender {
    pub(super) fn new(webhooks: Arc<Webhooks>, receivers: Arc<dyn HookReceivers>) -> Self {
        Self {
            webhooks,
            receivers,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Sends a request as soon as its user and the service have a place for it.
    pub(super) async fn send(&self, job: &DeliveryJob, of_user: &Semaphore) -> Attempted {
        let failed = |error| Attempted {
            status: None,
            error: Some(error),
            retry_after: None,
        };
        let Ok(_of_user) = of_user.acquire().await else {
            return failed("the service is ending");
        };
        // The settings may have changed since the creation.
        let Ok(url) = self.webhooks.outbound.check(&job.url).await else {
            return failed("the operator does not permit this URL any more");
        };
        let Ok(_of_all) = self.permits.acquire().await else {
            return failed("the service is ending");
        };
        let (timestamp, signatures) = match job.sign() {
            Ok(signed) => signed,
            Err(error) => {
                tracing::error!(id = %job.id, error = %error.chain(), "a webhook cannot be signed");
                return failed("the service cannot sign the request");
            }
        };
        let request = HookRequest {
            url,
            id: job.id.clone(),
            timestamp,
            signatures,
            body: job.body.clone(),
        };
        let answer = match timeout(LIMIT, self.receivers.post(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(reason)) => return failed(reason),
            Err(_) => return failed(LATE),
        };
        let error = match answer.status {
            200..=299 => None,
            300..=399 => Some("redirects are not followed"),
            _ => Some("the receiver did not answer with a success"),
        };
        Attempted {
            status: Some(answer.status),
            error,
            retry_after: answer.retry_after,
        }
    }
}

/// The receivers in the network.
pub(super) struct Network {
    /// None without trusted certificates in the operating system.
    client: Option<CheckedClient>,
}

impl Network {
    pub(super) fn new(webhooks: &Webhooks, tls: Result<ClientConfig, rustls::Error>) -> Self {
        let tls = tls.map_err(Box::<dyn Error>::from);
        let client = tls.and_then(|tls| CheckedClient::new(webhooks.outbound.clone(), tls));
        let client =
            client.inspect_err(|error| tracing::warn!(%error, "webhooks cannot be served"));
        Self {
            client: client.ok(),
        }
    }
}

#[async_trait]
impl HookReceivers for Network {
    async fn post(&self, request: HookRequest) -> Result<HookAnswer, &'static str> {
        let Some(client) = &self.client else {
            return Err("the service has no trusted certificates");
        };
        let checked = client.request(Method::POST, request.url.as_str()).await?;
        let sent = checked
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &request.id)
            .header("webhook-timestamp", request.timestamp)
            .header("webhook-signature", request.signatures)
            .body(request.body)
            .send()
            .await;
        let response = sent.map_err(|error| {
            tracing::debug!(id = %request.id, error = %chain(&error), "a webhook was not reached");
            reason(&error)
        })?;
        Ok(HookAnswer {
            status: response.status().as_u16(),
            retry_after: response.headers().get(RETRY_AFTER).and_then(seconds),
        })
    }
}

/// A number of seconds. The form with a date is rare, and the usual pause follows it.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The words for the user, which tell nothing about the network of the service.
fn reason(error: &reqwest::Error) -> &'static str {
    if causes(error).any(|cause| cause.is::<Refused>()) {
        "the host has no public address"
    } else if error.is_timeout() {
        LATE
    } else if error.is_connect() {
        "no connection to the receiver"
    } else {
        "the connection to the receiver broke off"
    }
}
