//! The functions of a node's driver, as the host calls them.

use super::content::ContentCalls;
use super::snapshots::SnapshotCalls;
use super::volumes::VolumeCalls;
use async_trait::async_trait;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::{
    DriverReport, DriverTarget, NodeHealth, Observed, PluginError, ResourceUsage, Spec, StoreMark,
    Surroundings, Tag,
};
use wharf_domain::ids::{Generation, NodeId};
use wharf_domain::secret::InstanceSecrets;
use wharf_engine::Transport;

/// The driver of one node. Cheap to clone; calls are independent of each other.
///
/// Calls are idempotent. After a [`PluginError::Fault`], a [`PluginError::Unreachable`] or a dropped
/// future the effect on the engine is unknown: inspect, then call again.
#[derive(Clone)]
pub struct NodeDriver(Arc<dyn DriverCalls>);

/// The functions of a driver: a plugin has them, and so has the engine of the simulator.
#[async_trait]
pub trait DriverCalls: ContentCalls + VolumeCalls + SnapshotCalls + Send + Sync {
    /// The node's name.
    fn name(&self) -> &NodeId;

    /// The kind of engine, such as `docker`; it selects among a blueprint's images.
    fn engine_kind(&self) -> &str;

    /// Whether the driver has a setting with this name in the node's `settings`, by its file.
    fn has_setting(&self, name: &str) -> bool;

    /// Whether the driver pulls images with the operator's accounts at registries, by its file.
    fn pulls_with_accounts(&self) -> bool;

    /// The connection to the engine; none for a driver without one.
    fn transport(&self) -> Option<&Transport>;

    /// The time of the engine's last answer to any request. None if a later request found it out of
    /// reach.
    fn last_answer(&self) -> Option<Instant>;

    /// How often contact with the engine was lost, however briefly. If the number is unchanged after a
    /// span of time, the engine did not restart within it.
    fn interruptions(&self) -> u64;

    /// Asks the engine for its health and features.
    async fn probe(&self) -> Result<NodeHealth, PluginError>;

    /// Moves an instance a step towards its specification. `secrets` are for the blueprint's files; the
    /// guest sees none of them.
    async fn ensure(
        &self,
        spec: &Spec,
        secrets: &InstanceSecrets,
    ) -> Result<DriverReport, PluginError>;

    /// Starts an existing instance, at its target's size.
    async fn start(&self, target: &DriverTarget) -> Result<DriverReport, PluginError>;

    /// Moves a stopped instance to a larger disk.
    async fn grow(&self, spec: &Spec) -> Result<DriverReport, PluginError>;

    /// Whether the driver moves instances between the nodes of a cluster.
    fn moves(&self) -> bool;

    /// Brings a stopped instance to this node from another one of its cluster.
    async fn move_here(&self, spec: &Spec) -> Result<DriverReport, PluginError>;

    /// Stops an instance: gracefully within `grace`, then hard. The timeout of the call is extended by it.
    async fn stop(
        &self,
        target: &DriverTarget,
        grace: Duration,
    ) -> Result<DriverReport, PluginError>;

    /// Applies the target's size, whole or not at all.
    async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError>;

    /// Opens exactly the target's ports on its public address, while it runs. Drivers without the
    /// interface `ports` do that in `ensure` and `start`.
    async fn set_ports(&self, target: &DriverTarget) -> Result<(), PluginError>;

    /// Reads the mark of the engine's store.
    async fn identify(&self) -> Result<StoreMark, PluginError>;

    /// Marks the engine's store, unless it has a mark.
    async fn mark(&self, mark: &str) -> Result<(), PluginError>;

    /// Reads the surroundings of the node's instances; none if the driver cannot see them.
    async fn survey(&self, images: &[String]) -> Result<Option<Surroundings>, PluginError>;

    /// Deletes an instance and everything it had on the node.
    async fn delete(&self, target: &DriverTarget) -> Result<DriverReport, PluginError>;

    /// Reports on an instance. The report has the runner's `generation`.
    async fn inspect(&self, tag: Tag, generation: Generation) -> Result<DriverReport, PluginError>;

    /// All of this installation's instances on the node, in any order.
    async fn list(&self) -> Result<Vec<Observed>, PluginError>;

    /// Live usage of a running instance; with its disk if `disk`.
    async fn stats(&self, tag: Tag, disk: bool) -> Result<ResourceUsage, PluginError>;
}

impl NodeDriver {
    /// The driver with these functions.
    pub fn new(calls: impl DriverCalls + 'static) -> Self {
        Self(Arc::new(calls))
    }
}

impl Deref for NodeDriver {
    type Target = dyn DriverCalls;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl std::fmt::Debug for NodeDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeDriver")
            .field("node", self.name())
            .field("engine", &self.engine_kind())
            .finish()
    }
}
