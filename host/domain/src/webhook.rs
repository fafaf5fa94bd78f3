//! Webhooks: addresses of a user that Wharf sends events to, and the deliveries.

use super::ids::UserId;
use super::secret::Encrypted;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// The id of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WebhookId(pub Uuid);

impl WebhookId {
    /// Parses the hyphenated form.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 36)
            .then(|| Uuid::try_parse(text).ok())
            .flatten()
            .map(Self)
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: WebhookId,
    pub owner: UserId,
    pub url: String,
    /// The types of events that it gets; all if empty.
    pub types: Vec<String>,
    /// The secret that signs.
    pub secret: Encrypted,
    /// The secret before the last rotation.
    pub earlier: Option<EarlierSecret>,
    pub created_at: Timestamp,
    /// The number of the last event of the owner that is a delivery or was passed over.
    pub after: u64,
    /// The number of the last delivery.
    pub deliveries: u64,
    /// The deliveries that are not done, with the times of their next attempts.
    pub pending: BTreeMap<u64, Timestamp>,
    /// The time of the first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// The time since when it gets no events, because it failed for too long.
    pub disabled_at: Option<Timestamp>,
}

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierSecret {
    pub secret: Encrypted,
    /// The time until which it signs too.
    pub until: Timestamp,
}

impl Webhook {
    /// Whether it gets events of a type.
    pub fn wants(&self, kind: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|wanted| wanted == kind)
    }
}

/// A delivery of an event to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The number of the event among those of the owner; `None` for a test.
    pub event: Option<u64>,
    pub state: DeliveryState,
    /// Number of attempts so far.
    pub attempt: u32,
    /// Time of the last attempt, or of the request for a delivery.
    pub at: Timestamp,
    /// Time of the first attempt, or of the request for a delivery.
    pub begun_at: Timestamp,
    /// Status of the last response.
    pub status: Option<u16>,
    /// Reason of the last failure.
    pub error: Option<String>,
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// A next attempt follows.
    Pending,
    /// The receiver has taken it.
    Delivered,
    /// It was given up.
    Failed,
}
