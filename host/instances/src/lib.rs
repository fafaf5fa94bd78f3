//! The use cases of instances, one file each. Every change is one atomic write, after which the reconciler is
//! notified and updates the node.

mod condition;
mod connection_record;
pub mod connection_watch;
pub mod content;
pub mod copies;
pub mod costs;
mod create;
mod delete;
mod estimate;
pub mod event_text;
pub mod events;
mod find;
pub mod flavor_images;
mod growing;
mod host_keys;
pub mod idempotency;
mod inventory;
mod kept;
pub mod labels;
mod metrics;
pub mod moves;
pub mod nodes;
mod offer;
mod pages;
pub mod plans;
mod ports;
mod private_ports;
pub mod quota;
mod read;
pub mod reconciler;
mod recreate;
pub mod restart;
pub mod retention;
mod shares;
pub mod snapshots;
mod stats;
mod stop;
pub mod suspension;
mod terminal;
mod tunnel;
mod update;
mod usage;
pub mod volumes;
mod waiters;

pub use condition::{Condition, InstanceCondition};
pub use costs::CorrectionLine;
pub use estimate::Estimate;
pub use events::{EventActor, OwnerEvent, OwnerEvents};
pub use find::{Selector, find};
pub use idempotency::IdempotencyKey;
pub use inventory::SharedInventory;
pub use kept::KeptUse;
pub use nodes::{NodeState, Nodes, Outage};
pub use offer::Offered;
pub use pages::{NamedPage, password_digest};
pub use read::InstanceView;
pub use recreate::{NewDisk, RecreateRequest, Recreated, Returning, ReturningMount, check_lost};
pub use shares::{Share, ShareUpdate};
pub use stats::InstanceStats;
pub use stop::Stopped;
pub use terminal::TerminalRequest;
pub use tunnel::Tunnel;
pub use usage::{KeptUsage, Usage};
pub use waiters::Waiters;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument;
use wharf_config::Config;
use wharf_db::{Changes, Db, FeatureTables, Read, View};
use wharf_domain::audit::Origin;
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId, SnapshotId, VolumeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;
use wharf_ground::clock::Clock;
use wharf_ground::config::SharedConfig;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_plugin::{NodeDriver, Plugins};
use wharf_terminal::{InstancePorts, Terminals, Tunnels};

/// The tables of this crate, by feature.
pub const TABLES: &[FeatureTables] = &[
    quota::TABLES,
    suspension::TABLES,
    idempotency::TABLES,
    host_keys::TABLES,
    private_ports::TABLES,
    labels::TABLES,
    shares::TABLES,
    restart::TABLES,
    moves::TABLES,
    copies::TABLES,
    content::TABLES,
    nodes::TABLES,
    volumes::MOUNT_TABLES,
    volumes::SHARE_TABLES,
    snapshots::TABLES,
];

/// Tells the reconciler that an instance's row has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nudge {
    /// The instance.
    pub instance: InstanceId,
    /// The request that changed it.
    pub request_id: Arc<str>,
}

/// The most nudges that wait for the reconciler, which takes them at once; a request waits for a place.
const NUDGES: usize = 4096;

/// Instances with work that a refusal looks at for deleted ones.
const MAX_LOOKS: usize = 1000;

/// The use cases and their shared state.
pub struct App {
    config: SharedConfig,
    pub(crate) db: Db,
    pub(crate) plugins: Plugins,
    pub(crate) drivers: BTreeMap<NodeId, NodeDriver>,
    pub(crate) vault: Vault,
    pub(crate) installation: String,
    pub(crate) waiters: Waiters,
    pub(crate) growing: growing::Growing,
    /// The images of flavors, by the last survey of a node.
    pub(crate) flavor_images: ArcSwap<Vec<flavor_images::FlavorImages>>,
    /// The progress of snapshots that are being made.
    pub(crate) snapshot_progress: Mutex<BTreeMap<SnapshotId, String>>,
    /// The progress of volumes that are being made.
    pub(crate) volume_progress: Mutex<BTreeMap<VolumeId, String>>,
    pub(crate) nodes: Nodes,
    pub(crate) inventory: SharedInventory,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) metrics: metrics::Metrics,
    terminals: Arc<Terminals>,
    tunnels: Arc<Tunnels>,
    /// The SSH connections through which tunnels reach ports inside.
    tunnel_ports: InstancePorts,
    /// Visitors have connections of their own: channels of a connection can hold up each other.
    page_ports: InstancePorts,
    guests: Handle,
    nudge: mpsc::Sender<Nudge>,
    /// Notified when instances of drained nodes may have to move.
    drains: Notify,
    samples: stats::Samples,
    in_flight: idempotency::InFlight,
    /// Its owner, which keeps this app alive, keeps it too.
    content_store: OnceLock<Weak<dyn content::ContentStore>>,
    /// The places of contents that come to nodes, in the order in which instances wait for them.
    content_places: Arc<Semaphore>,
}

/// The arguments of [`App::new`].
pub struct AppParts {
    pub config: SharedConfig,
    pub db: Db,
    /// The inventory that the database keeps up to date.
    pub inventory: SharedInventory,
    /// The clock that the database uses.
    pub clock: Clock,
    /// The source of ids, generated names and passwords.
    pub random: Random,
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
    /// The driver of a node.
    pub fn driver(&self, node: &NodeId) -> Option<&NodeDriver> {
        self.drivers.get(node)
    }

    /// Creates the application. The reconciler reads from the returned receiver.
    pub fn new(parts: AppParts) -> (Arc<Self>, mpsc::Receiver<Nudge>) {
        let (nudge, nudged) = mpsc::channel(NUDGES);
        let app = Self {
            installation: parts.installation,
            terminals: Arc::default(),
            tunnels: Arc::default(),
            tunnel_ports: InstancePorts::of_tunnels(),
            page_ports: InstancePorts::of_pages(),
            config: parts.config,
            db: parts.db,
            inventory: parts.inventory,
            clock: parts.clock,
            random: parts.random,
            metrics: metrics::Metrics::default(),
            plugins: parts.plugins,
            nodes: Nodes::new(parts.drivers.keys().cloned()),
            drivers: parts.drivers,
            vault: parts.vault,
            waiters: Waiters::default(),
            growing: growing::Growing::default(),
            flavor_images: ArcSwap::default(),
            snapshot_progress: Mutex::default(),
            volume_progress: Mutex::default(),
            guests: parts.guests,
            nudge,
            drains: Notify::new(),
            samples: stats::Samples::default(),
            in_flight: idempotency::InFlight::default(),
            content_store: OnceLock::new(),
            content_places: Arc::new(Semaphore::new(content::AT_ONCE)),
        };
        (Arc::new(app), nudged)
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    pub fn inventory(&self) -> &SharedInventory {
        &self.inventory
    }

    /// The states of the nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// The driver of each node.
    pub fn drivers(&self) -> &BTreeMap<NodeId, NodeDriver> {
        &self.drivers
    }

    /// The requests that wait for the reconciler.
    pub fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Returns the present configuration.
    pub fn config(&self) -> Arc<Config> {
        self.config.get()
    }

    /// The host of the paths that users take to a node, if its configuration replaces it for probes.
    pub(crate) fn probe_host(&self, node: &NodeId) -> Option<String> {
        let config = self.config();
        let node = config.node.iter().find(|known| known.name == node.0)?;
        node.probe_host.clone()
    }

    /// Returns the id of this installation in the labels of engine objects.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// Returns whether the database accepts reads and writes.
    pub fn ready(&self) -> bool {
        self.db.takes_writes() && self.db.read(|rows| rows.installation()).is_ok()
    }

    /// Calls a plugin on the guests' runtime, so that guests use no threads of the REST interface.
    /// Dropping the future cancels the call.
    pub async fn call<T: Send + 'static>(
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

    /// Decides and writes a caller's change of an instance, with its audit record. It is refused where
    /// [`Db::write`] is.
    async fn change<T: Send + 'static>(
        &self,
        caller: &Caller,
        operation: &'static str,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.db
            .write(audited(caller.origin(), operation, decide))
            .await
    }

    /// [`Self::change`] that is never refused for lack of room, because it frees something.
    async fn change_essential<T: Send + 'static>(
        &self,
        caller: &Caller,
        operation: &'static str,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let audited = audited(caller.origin(), operation, decide);
        self.db.write_essential(audited).await
    }

    /// Notifies the reconciler of work. A lost notification only costs time, since the next tick finds
    /// the work in the database.
    async fn nudge(&self, caller: &Caller, instance: InstanceId) {
        let request_id = Arc::clone(&caller.request_id);
        let nudge = Nudge {
            instance,
            request_id,
        };
        let _ = self.nudge.send(nudge).await;
    }

    /// Notifies the reconciler of work that the operator has requested.
    pub async fn wake(&self, instance: InstanceId) {
        let nudge = Nudge {
            instance,
            request_id: "operator".into(),
        };
        let _ = self.nudge.send(nudge).await;
    }

    /// Returns the time by which an instance must be reachable if it is started at `from`.
    fn deadline(&self, from: Timestamp) -> Timestamp {
        from.plus(Duration::from_secs(self.config().provisioning_deadline_s))
    }

    /// Notes in a lack of resources that deleted instances still hold some.
    fn with_freeing(&self, error: Error) -> Error {
        let mut error = error;
        if let Error::Insufficient(short) | Error::OverQuota(short) = &mut error {
            let freeing = self.db.read(|rows| {
                for id in rows.pending()?.into_iter().take(MAX_LOOKS) {
                    let row = rows.instance(id)?;
                    if row.is_some_and(|row| row.intent == Intent::Delete) {
                        return Ok(true);
                    }
                }
                Ok(false)
            });
            // The note is optional: without it the refusal is still correct.
            short.freeing = freeing.unwrap_or(false);
        }
        error
    }

    /// Waits until the node has reached an intent, or a later intent has replaced it. Also returns when
    /// the node is known to be out of reach, or the wait times out.
    async fn wait_settled(&self, intended: &Instance) {
        let timeout = Duration::from_millis(self.config().limits.answer_wait_ms);
        let waiting = self.waiters.enter(intended.id);
        let done = || self.is_settled(intended);
        waiting.until(timeout, done).await;
    }

    /// Whether waiting for an intent is over.
    fn is_settled(&self, intended: &Instance) -> bool {
        let row = self.db.read(|rows| rows.instance(intended.id));
        match row {
            Ok(Some(now)) => {
                now.progress == Progress::Settled
                    || now.generation > intended.generation
                    || self.nodes.is_away(&now.node)
            }
            Ok(None) | Err(_) => true,
        }
    }
}

/// Adds the audit record of a caller's change.
fn audited<T>(
    origin: Origin,
    operation: &'static str,
    decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error>,
) -> impl Fn(&View<'_>) -> Result<(T, Changes), Error> {
    move |view| {
        let (result, changes) = decide(view)?;
        Ok((result, changes.audited(&origin, operation, view.now)))
    }
}
