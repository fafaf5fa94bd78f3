//! The state that handlers share.

use super::compress::Workers;
use super::docs::Docs;
use super::rate::Rates;
use super::unsent::Unsent;
use crate::api::Api;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The state that handlers share.
pub(super) struct Interface {
    pub(super) api: Api,
    pub(super) docs: Docs,
    pub(super) body_timeout: Duration,
    /// A permit for each authenticated request that runs.
    pub(super) in_flight: Arc<Semaphore>,
    /// None without a limit.
    pub(super) rates: Option<Rates>,
    pub(super) unsent: Arc<Unsent>,
    pub(super) workers: Workers,
}
