//! The use cases, one file each. Every change is one atomic write; then the reconciler is nudged
//! and makes the node follow.

mod clock;
mod create;
mod delete;
mod features;
mod find;
pub mod history;
mod key;
mod ports;
mod read;
mod restart;
mod settled;
mod stats;
mod stop;
mod update;
mod vault;

pub use clock::now;
pub use features::NodeFeatures;
pub use find::Selector;
pub use key::{ApiKey, Caller, KeyInfo, Keys};
pub use read::InstanceView;
pub use settled::Settled;
pub use stats::Stats;
pub use vault::{Vault, VaultError};

pub use crate::db::{Topic, Version};

use crate::config::Config;
use crate::db::{Db, Read};
use crate::domain::driver::PluginError;
use crate::domain::error::Error;
use crate::domain::ids::{InstanceId, NodeId};
use crate::domain::instance::{Instance, Progress};
use crate::domain::time::Timestamp;
use crate::plugin::{NodeDriver, Plugins};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Tells the reconciler that an instance's row has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nudge {
    /// The instance.
    pub instance: InstanceId,
    /// The request that changed it.
    pub request_id: Arc<str>,
}

/// What the use cases work with.
pub struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) db: Db,
    pub(crate) plugins: Plugins,
    pub(crate) drivers: BTreeMap<NodeId, NodeDriver>,
    pub(crate) vault: Vault,
    pub(crate) installation: String,
    pub(crate) settled: Settled,
    pub(crate) features: NodeFeatures,
    keys: Keys,
    guests: Handle,
    nudge: mpsc::UnboundedSender<Nudge>,
    samples: stats::Samples,
    web_host: Arc<str>,
}

/// What [`App::new`] is made of.
pub struct Parts {
    /// The configuration.
    pub config: Arc<Config>,
    /// The database.
    pub db: Db,
    /// The loaded plugins.
    pub plugins: Plugins,
    /// A driver for each node.
    pub drivers: BTreeMap<NodeId, NodeDriver>,
    /// Encrypts secrets.
    pub vault: Vault,
    /// Names this installation towards engines.
    pub installation: String,
    /// The threads that guests compute on.
    pub guests: Handle,
}

impl App {
    /// Puts the parts together. The receiver is the reconciler's.
    pub fn new(parts: Parts) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<Nudge>), Error> {
        let (nudge, nudged) = mpsc::unbounded_channel();
        let app = Self {
            keys: Keys::load(parts.db.clone())?,
            installation: parts.installation,
            web_host: parts.config.web.host.as_str().into(),
            config: parts.config,
            db: parts.db,
            plugins: parts.plugins,
            drivers: parts.drivers,
            vault: parts.vault,
            settled: Settled::default(),
            features: NodeFeatures::default(),
            guests: parts.guests,
            nudge,
            samples: stats::Samples::default(),
        };
        Ok((Arc::new(app), nudged))
    }

    /// What happened to an instance, for the operator.
    pub fn events(&self, selector: &Selector) -> Result<Vec<history::EventLine>, Error> {
        history::events(&self.db, selector)
    }

    /// What a user's instances cost in a span of time, for the operator.
    pub fn bill(
        &self,
        email: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<history::BillLine>, Error> {
        history::bill(&self.db, email, from, to)
    }

    /// The version of what there is to read about a topic: see [`Db::version`].
    pub fn version(&self, topic: &Topic) -> Option<Version> {
        self.db.version(topic)
    }

    /// Most bytes of rendered answers to keep.
    pub fn answer_cache_bytes(&self) -> u64 {
        self.config.limits.answer_cache_mib.saturating_mul(1 << 20)
    }

    /// The API keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Who has this key, if it is valid.
    pub fn authenticate(&self, key: &str, request_id: Arc<str>) -> Option<Caller> {
        self.keys.authenticate(key, request_id)
    }

    /// Whether the database answers and takes writes.
    pub fn ready(&self) -> bool {
        self.db.takes_writes() && self.db.read(|rows| rows.installation()).is_ok()
    }

    /// Calls a plugin on the guests' threads, so that a guest that computes does not block requests.
    /// Dropping the future aborts the call.
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

    /// Tells the reconciler that there is work. Should a nudge be lost, the next tick finds the work in
    /// the database.
    fn nudge(&self, caller: &Caller, instance: InstanceId) {
        let request_id = Arc::clone(&caller.request_id);
        let _ = self.nudge.send(Nudge {
            instance,
            request_id,
        });
    }

    /// When an instance that is asked to run from now on must be reachable.
    fn deadline(&self, from: Timestamp) -> Timestamp {
        let time = self.config.provisioning_deadline_s.saturating_mul(1000);
        Timestamp(
            from.0
                .saturating_add(i64::try_from(time).unwrap_or(i64::MAX)),
        )
    }

    /// Waits, bounded, until the node follows an intent or a later one has overtaken it.
    async fn wait_settled(&self, intended: &Instance) {
        let bound = Duration::from_millis(self.config.limits.answer_wait_ms);
        let done = || {
            let row = self.db.read(|rows| rows.instance(intended.id));
            match row {
                Ok(Some(now)) => {
                    now.progress == Progress::Settled || now.generation > intended.generation
                }
                Ok(None) | Err(_) => true,
            }
        };
        self.settled.wait(intended.id, bound, done).await;
    }
}
