//! The driver of one node, with a method for each function of its interface.

use super::bindings::types;
use super::bindings::{NodeDriver as WitDriver, driver_types as wit};
use super::call::{Call, CallRunner, TRANSFER, TRANSFER_LIST};
use super::config::NodeLimits;
use super::convert::{driver as convert, error_from_guest};
use super::guest::Guest;
use super::load::DriverPlugin;
use super::metrics::Queued;
use super::queue::Queue;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Store;
use wharf_domain::driver::{
    DriverReport, DriverTarget, NodeHealth, Observed, PluginError, ResourceUsage, Spec, StoreMark,
    Surroundings, Tag,
};
use wharf_domain::ids::{Generation, NodeId};
use wharf_domain::secret::InstanceSecrets;
use wharf_engine::{CallScope, EngineAccess, EngineNode, Transport};

/// The driver of one node. Cheap to clone; calls are independent of each other.
///
/// Calls are idempotent. After a [`PluginError::Fault`], a [`PluginError::Unreachable`] or a dropped
/// future the effect on the engine is unknown: inspect, then call again.
#[derive(Clone)]
pub struct NodeDriver(Arc<DriverOfNode>);

struct DriverOfNode {
    runner: Arc<CallRunner>,
    plugin: Arc<DriverPlugin>,
    engine: Arc<EngineNode>,
    installation: String,
    settings: String,
    /// The text that the last probe left for later calls, and the count of interruptions before it.
    /// After another interruption the text may be about an earlier engine.
    probe_cache: Mutex<(u64, String)>,
    changes: Queue,
    reads: Queue,
    usage: Queue,
}

/// The kind of a call: each has a queue of its own.
#[derive(Clone, Copy)]
enum CallKind {
    Read,
    Change,
    Usage,
}

/// The differences between the functions.
struct CallOptions {
    function: &'static str,
    kind: CallKind,
    scope: CallScope,
    secrets: InstanceSecrets,
    grace: Duration,
    transfer: usize,
}

impl NodeDriver {
    pub(super) fn new(
        runner: Arc<CallRunner>,
        plugin: Arc<DriverPlugin>,
        engine: EngineNode,
        installation: String,
        settings: String,
        limits: NodeLimits,
    ) -> Self {
        let queue = |places| Queue::new(places, limits.waiting, limits.wait);
        Self(Arc::new(DriverOfNode {
            runner,
            plugin,
            engine: Arc::new(engine),
            installation,
            settings,
            probe_cache: Mutex::default(),
            changes: queue(limits.changes),
            reads: queue(limits.reads),
            usage: queue(limits.usage),
        }))
    }

    /// The node's name.
    pub fn name(&self) -> &NodeId {
        &self.0.engine.name
    }

    /// The kind of engine, such as `docker`; it selects among a blueprint's images.
    pub fn engine_kind(&self) -> &str {
        &self.0.plugin.engine_kind
    }

    /// Whether the driver has a setting with this name in the node's `settings`, by its file.
    pub fn has_setting(&self, name: &str) -> bool {
        self.0.engine.has_setting(name)
    }

    /// The connection to the engine.
    pub fn transport(&self) -> &Transport {
        self.0.engine.transport()
    }

    /// The time of the engine's last answer to any request. None if a later request found it out of
    /// reach.
    pub fn last_answer(&self) -> Option<Instant> {
        self.0.engine.last_answer()
    }

    /// How often contact with the engine was lost, however briefly. If the number is unchanged after a
    /// span of time, the engine did not restart within it.
    pub fn interruptions(&self) -> u64 {
        self.0.engine.interruptions()
    }

    /// Asks the engine for its health and features.
    pub async fn probe(&self) -> Result<NodeHealth, PluginError> {
        let interruptions = self.interruptions();
        let options = self.reads("probe", CallScope::node(&self.0.installation));
        let mut health = self
            .call(options, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_probe(&mut store, &node)
                    .await
            })
            .await?;
        let text = convert::probe_cache(&mut health)?;
        let health = convert::health(health)?;
        *self.0.probe_cache.lock() = (interruptions, text);
        Ok(health)
    }

    /// The text of the last probe; empty if contact was lost since.
    fn cached_probe(&self) -> String {
        let cache = self.0.probe_cache.lock();
        let (interruptions, text) = &*cache;
        if *interruptions == self.interruptions() {
            text.clone()
        } else {
            String::new()
        }
    }

    /// Moves an instance a step towards its specification. `secrets` are for the blueprint's files; the
    /// guest sees none of them.
    pub async fn ensure(
        &self,
        spec: &Spec,
        secrets: &InstanceSecrets,
    ) -> Result<DriverReport, PluginError> {
        let scope = CallScope::create(&self.0.installation, spec, self.engine_kind());
        let options = CallOptions {
            secrets: secrets.clone(),
            ..self.changes("ensure", scope)
        };
        let given = convert::spec(spec);
        let report = self
            .call(options, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_ensure(&mut store, &node, &given)
                    .await
            })
            .await?;
        convert::report(report, spec.target.generation)
    }

    /// Starts an existing instance, at its target's size.
    pub async fn start(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let report = self
            .call(
                self.change("start", target),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_start(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        convert::report(report, target.generation)
    }

    /// Moves a stopped instance to a larger disk.
    pub async fn grow(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let scope = CallScope::create(&self.0.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let report = self
            .call(
                self.changes("grow", scope),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_grow(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        convert::report(report, spec.target.generation)
    }

    /// Whether the driver moves instances between the nodes of a cluster.
    pub fn moves(&self) -> bool {
        self.0.plugin.with_moves.is_some()
    }

    /// Brings a stopped instance to this node from another one of its cluster.
    pub async fn move_here(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let Some(pre) = self.0.plugin.with_moves.clone() else {
            return Err(PluginError::Unsupported("moves".to_owned()));
        };
        let scope = CallScope::moves(&self.0.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let options = self.changes("move-here", scope);
        let report = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let moves = guest.wharf_plugin_moves();
            moves.call_move_here(&mut store, &node, &given).await
        });
        convert::report(report.await?, spec.target.generation)
    }

    /// Stops an instance: gracefully within `grace`, then hard. The timeout of the call is extended by it.
    pub async fn stop(
        &self,
        target: &DriverTarget,
        grace: Duration,
    ) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        let options = CallOptions {
            grace,
            ..self.change("stop", target)
        };
        let report = self
            .call(options, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_stop(&mut store, &node, &given, grace_ms)
                    .await
            })
            .await?;
        convert::report(report, target.generation)
    }

    /// Applies the target's size, whole or not at all.
    pub async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let report = self
            .call(
                self.change("resize", target),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_resize(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        convert::report(report, target.generation)
    }

    /// Opens exactly the target's ports on its public address, while it runs. Drivers without the
    /// interface `ports` do that in `ensure` and `start`.
    pub async fn set_ports(&self, target: &DriverTarget) -> Result<(), PluginError> {
        let Some(pre) = self.0.plugin.with_ports.clone() else {
            return Ok(());
        };
        let given = convert::target(target);
        self.enter(
            self.change("set-ports", target),
            |mut store, node| async move {
                let guest = pre.instantiate_async(&mut store).await?;
                let ports = guest.wharf_plugin_ports();
                ports.call_set_ports(&mut store, &node, &given).await
            },
        )
        .await
    }

    /// Reads the mark of the engine's store.
    pub async fn identify(&self) -> Result<StoreMark, PluginError> {
        let Some(pre) = self.0.plugin.with_identity.clone() else {
            return Ok(StoreMark::Unsupported);
        };
        let options = self.reads("identify", CallScope::node(&self.0.installation));
        let mark = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let identity = guest.wharf_plugin_identity();
            identity.call_identify(&mut store, &node).await
        });
        convert::mark(mark.await)
    }

    /// Marks the engine's store, unless it has a mark.
    pub async fn mark(&self, mark: &str) -> Result<(), PluginError> {
        let Some(pre) = self.0.plugin.with_identity.clone() else {
            return Err(PluginError::Unsupported("marks of stores".to_owned()));
        };
        let options = self.changes("mark", CallScope::mark(&self.0.installation, mark));
        let mark = mark.to_owned();
        self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let identity = guest.wharf_plugin_identity();
            identity.call_mark(&mut store, &node, &mark).await
        })
        .await
    }

    /// Reads the surroundings of the node's instances; none if the driver cannot see them.
    pub async fn survey(&self, images: &[String]) -> Result<Option<Surroundings>, PluginError> {
        let Some(pre) = self.0.plugin.with_survey.clone() else {
            return Ok(None);
        };
        let options = self.reads("look", CallScope::survey(&self.0.installation, images));
        let images = images.to_vec();
        let found = self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            let survey = guest.wharf_plugin_survey();
            survey.call_look(&mut store, &node, &images).await
        });
        Ok(Some(convert::surroundings(found.await?)))
    }

    /// Deletes an instance and everything it had on the node.
    pub async fn delete(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let report = self
            .call(
                self.change("delete", target),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_delete(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        convert::report(report, target.generation)
    }

    /// Reports on an instance. The report has the runner's `generation`.
    pub async fn inspect(
        &self,
        tag: Tag,
        generation: Generation,
    ) -> Result<DriverReport, PluginError> {
        let given = convert::tag(tag);
        let report = self
            .call(
                self.reads("inspect", CallScope::read(&self.0.installation, tag)),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_inspect(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        // The function of the interface has no generation.
        convert::report(
            wit::Report {
                generation: generation.0,
                ..report
            },
            generation,
        )
    }

    /// All of this installation's instances on the node, in any order.
    pub async fn list(&self) -> Result<Vec<Observed>, PluginError> {
        let options = CallOptions {
            transfer: TRANSFER_LIST,
            ..self.reads("list", CallScope::node(&self.0.installation))
        };
        let list = self
            .call(options, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_list(&mut store, &node)
                    .await
            })
            .await?;
        convert::list(list, self.name())
    }

    /// Live usage of a running instance; with its disk if `disk`.
    pub async fn stats(&self, tag: Tag, disk: bool) -> Result<ResourceUsage, PluginError> {
        let given = convert::tag(tag);
        let options = CallOptions {
            kind: CallKind::Usage,
            ..self.reads("stats", CallScope::read(&self.0.installation, tag))
        };
        let usage = self
            .call(options, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_stats(&mut store, &node, &given, disk)
                    .await
            })
            .await?;
        Ok(convert::usage(usage))
    }

    fn reads(&self, function: &'static str, scope: CallScope) -> CallOptions {
        CallOptions {
            function,
            kind: CallKind::Read,
            scope,
            secrets: InstanceSecrets::default(),
            grace: Duration::ZERO,
            transfer: TRANSFER,
        }
    }

    fn changes(&self, function: &'static str, scope: CallScope) -> CallOptions {
        CallOptions {
            kind: CallKind::Change,
            ..self.reads(function, scope)
        }
    }

    fn change(&self, function: &'static str, target: &DriverTarget) -> CallOptions {
        self.changes(function, CallScope::change(&self.0.installation, target))
    }

    async fn call<T, F, Fut>(&self, options: CallOptions, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>, WitDriver, wit::Node) -> Fut,
        Fut: Future<Output = wasmtime::Result<Result<T, types::Error>>>,
    {
        let pre = self.0.plugin.pre.clone();
        self.enter(options, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            body(store, guest, node).await
        })
        .await
    }

    /// Makes one call: waits for a place in the queue, and gives a fresh guest the engine within its scope.
    async fn enter<T, F, Fut>(&self, options: CallOptions, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>, wit::Node) -> Fut,
        Fut: Future<Output = wasmtime::Result<Result<T, types::Error>>>,
    {
        let inner = &*self.0;
        let queue = match options.kind {
            CallKind::Read => &inner.reads,
            CallKind::Usage => &inner.usage,
            CallKind::Change => &inner.changes,
        };
        let queued = Queued::new(&inner.runner.metrics().queued);
        let _place = queue.enter().await?;
        drop(queued);
        let wall = inner.runner.limits().wall.saturating_add(options.grace);
        let deadline = Instant::now() + wall;
        let call = Call {
            plugin: Arc::clone(&inner.plugin.name),
            node: Some(inner.engine.name.clone()),
            function: options.function,
            access: Some(EngineAccess::new(
                Arc::clone(&inner.engine),
                options.scope,
                options.secrets,
                deadline,
            )),
            wall,
            transfer: options.transfer,
        };
        let node = wit::Node {
            name: inner.engine.name.0.clone(),
            installation: inner.installation.clone(),
            settings: inner.settings.clone(),
            hint: self.cached_probe(),
        };
        inner
            .runner
            .run(call, |store| body(store, node))
            .await?
            .map_err(error_from_guest)
    }
}

impl std::fmt::Debug for NodeDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeDriver")
            .field("node", self.name())
            .field("plugin", &self.0.plugin.name)
            .finish()
    }
}
