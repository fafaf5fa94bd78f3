//! The use cases, one file each. Every change is one atomic write, after which the reconciler is
//! notified and updates the node.

mod audit;
pub mod bill;
mod caller;
mod clock;
pub mod clock_watch;
mod condition;
mod create;
mod delete;
mod disk;
mod engines;
mod features;
mod find;
mod forget;
pub mod history;
mod idempotency;
mod key;
mod key_use;
mod keyring;
mod node_list;
mod nodes;
mod operator;
mod ports;
mod quota;
mod read;
pub mod reconciler;
mod restart;
pub mod retention;
mod rotate;
mod scheduler;
mod settled;
mod stats;
mod stop;
mod update;
mod vault;

pub use audit::{AuditEntry, page as audit_page, record as audit_record};
pub use caller::Caller;
pub use clock::{Clock, ClockState};
pub use condition::Condition;
pub use disk::Disk;
pub use engines::compare_engines;
pub use features::NodeFeatures;
pub use find::Selector;
pub use idempotency::IdempotencyKey;
pub use key::{ApiKey, KeyInfo, Keys, NewKey};
pub use keyring::key_in;
pub use node_list::NodeLine;
pub use nodes::{NodeState, Nodes, Outage};
pub use operator::{Operator, SecretsSource};
pub use quota::UserQuota;
pub use read::InstanceView;
pub use rotate::Rotation;
pub use scheduler::Scheduler;
pub use settled::Settled;
pub use stats::Stats;
pub use vault::{Vault, VaultError};

use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;
use wharf_config::Config;
use wharf_db::{Db, Read};
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Progress};
use wharf_domain::time::Timestamp;
use wharf_plugin::{NodeDriver, Plugins};

/// Tells the reconciler that an instance's row has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nudge {
    /// The instance.
    pub instance: InstanceId,
    /// The request that changed it.
    pub request_id: Arc<str>,
}

/// The use cases and their shared state.
pub struct App {
    config: ArcSwap<Config>,
    pub(crate) db: Db,
    pub(crate) plugins: Plugins,
    pub(crate) drivers: BTreeMap<NodeId, NodeDriver>,
    pub(crate) vault: Vault,
    pub(crate) installation: String,
    pub(crate) settled: Settled,
    pub(crate) features: NodeFeatures,
    pub(crate) nodes: Nodes,
    pub(crate) scheduler: Scheduler,
    pub(crate) clock: Clock,
    disk: Disk,
    keys: Keys,
    guests: Handle,
    nudge: mpsc::UnboundedSender<Nudge>,
    samples: stats::Samples,
    in_flight: idempotency::InFlight,
    web_host: Arc<str>,
}

/// The arguments of [`App::new`].
pub struct Parts {
    pub config: Arc<Config>,
    pub db: Db,
    /// The inventory that the database keeps up to date.
    pub scheduler: Scheduler,
    /// The clock that the database uses.
    pub clock: Clock,
    pub plugins: Plugins,
    /// Driver of each node.
    pub drivers: BTreeMap<NodeId, NodeDriver>,
    pub vault: Vault,
    /// Id of this installation in the labels of engine objects.
    pub installation: String,
    /// Runtime that wasm guests run on.
    pub guests: Handle,
}

impl App {
    /// Creates the application. The reconciler reads from the returned receiver.
    pub fn new(parts: Parts) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<Nudge>), Error> {
        let (nudge, nudged) = mpsc::unbounded_channel();
        let app = Self {
            disk: Disk::new(
                parts.config.data_dir.clone(),
                parts.config.limits.disk_reserve_mib,
            ),
            keys: Keys::load(parts.db.clone(), parts.clock.clone())?,
            installation: parts.installation,
            web_host: parts.config.web.host.as_str().into(),
            config: ArcSwap::new(parts.config),
            db: parts.db,
            scheduler: parts.scheduler,
            clock: parts.clock,
            plugins: parts.plugins,
            nodes: Nodes::new(parts.drivers.keys().cloned()),
            drivers: parts.drivers,
            vault: parts.vault,
            settled: Settled::default(),
            features: NodeFeatures::default(),
            guests: parts.guests,
            nudge,
            samples: stats::Samples::default(),
            in_flight: idempotency::InFlight::default(),
        };
        Ok((Arc::new(app), nudged))
    }

    /// Returns the present configuration.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Replaces the configuration. Only settings that [`Config::reload`] permits may differ.
    pub fn reconfigure(&self, config: Config) {
        self.config.store(Arc::new(config));
    }

    /// Returns the size limit of the response cache in bytes.
    pub fn answer_cache_bytes(&self) -> u64 {
        self.config()
            .limits
            .answer_cache_mib
            .saturating_mul(1 << 20)
    }

    /// Returns the id of this installation in the labels of engine objects.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// Completes when the database takes no more writes.
    pub async fn lost(&self) {
        self.db.lost().await;
    }

    /// The disk of the database.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the caller with a key, if the key is valid.
    pub fn authenticate(&self, key: &str, request_id: Arc<str>) -> Option<Caller> {
        self.keys.authenticate(key, request_id)
    }

    /// Returns whether the database accepts reads and writes.
    pub fn ready(&self) -> bool {
        self.db.takes_writes() && self.db.read(|rows| rows.installation()).is_ok()
    }

    /// Calls a plugin on the guests' runtime, so that guests use no threads of the REST interface.
    /// Dropping the future cancels the call.
    async fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, PluginError>> + Send + 'static,
    ) -> Result<T, PluginError> {
        let mut calls = JoinSet::new();
        calls.spawn_on(call.in_current_span(), &self.guests);
        match calls.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Err(PluginError::Fault(error.to_string())),
            None => Err(PluginError::Fault("the call did not run".to_owned())),
        }
    }

    /// Notifies the reconciler of work. A lost notification only costs time, since the next tick finds
    /// the work in the database.
    fn nudge(&self, caller: &Caller, instance: InstanceId) {
        let request_id = Arc::clone(&caller.request_id);
        let _ = self.nudge.send(Nudge {
            instance,
            request_id,
        });
    }

    /// Returns the time by which an instance must be reachable if it is started at `from`.
    fn deadline(&self, from: Timestamp) -> Timestamp {
        let millis = self.config().provisioning_deadline_s.saturating_mul(1000);
        Timestamp(
            from.0
                .saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)),
        )
    }

    /// Waits until the node has reached an intent, a later intent has replaced it, or the wait times
    /// out.
    async fn wait_settled(&self, intended: &Instance) {
        let timeout = Duration::from_millis(self.config().limits.answer_wait_ms);
        let done = || {
            let row = self.db.read(|rows| rows.instance(intended.id));
            match row {
                Ok(Some(now)) => {
                    now.progress == Progress::Settled || now.generation > intended.generation
                }
                Ok(None) | Err(_) => true,
            }
        };
        self.settled.wait(intended.id, timeout, done).await;
    }
}
