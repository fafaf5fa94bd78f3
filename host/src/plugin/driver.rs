//! A node's driver, as the rest of the host sees it.

use super::bindings::types;
use super::bindings::{NodeDriver as WitDriver, driver_types as wit};
use super::call::{Call, Caller, TRANSFER, TRANSFER_LIST};
use super::config::NodeLimits;
use super::convert::{driver as convert, error as convert_error};
use super::guest::Guest;
use super::load::DriverPlugin;
use super::queue::Lane;
use crate::domain::driver::{NodeHealth, Observed, PluginError, Report, Spec, Tag, Target, Usage};
use crate::domain::ids::{Generation, NodeId};
use crate::domain::secret::Secrets;
use crate::engine::{Access, EngineNode, Scope};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasmtime::Store;

/// The driver of one node. Cheap to clone; every call is independent of every other.
///
/// Calls are idempotent. A [`PluginError::Fault`], [`PluginError::Unreachable`] or a dropped future
/// says nothing about what the engine has done: inspect, then call again.
#[derive(Clone)]
pub struct NodeDriver(Arc<Inner>);

struct Inner {
    caller: Arc<Caller>,
    plugin: Arc<DriverPlugin>,
    engine: Arc<EngineNode>,
    installation: String,
    settings: String,
    /// Of the last probe, and how often contact was lost before it: what it found may not hold for
    /// the engine that is there after another time.
    hint: Mutex<(u64, String)>,
    changes: Lane,
    reads: Lane,
}

/// One of the two lanes of a node.
#[derive(Clone, Copy)]
enum Sort {
    Read,
    Change,
}

/// What differs between the functions.
struct How {
    function: &'static str,
    sort: Sort,
    scope: Scope,
    secrets: Secrets,
    grace: Duration,
    transfer: usize,
}

impl NodeDriver {
    pub(super) fn new(
        caller: Arc<Caller>,
        plugin: Arc<DriverPlugin>,
        engine: EngineNode,
        installation: String,
        settings: String,
        limits: NodeLimits,
    ) -> Self {
        let lane = |places| Lane::new(places, limits.waiting, limits.wait);
        Self(Arc::new(Inner {
            caller,
            plugin,
            engine: Arc::new(engine),
            installation,
            settings,
            hint: Mutex::default(),
            changes: lane(limits.changes),
            reads: lane(limits.reads),
        }))
    }

    /// The node's name.
    pub fn name(&self) -> &NodeId {
        &self.0.engine.name
    }

    /// What the driver drives, such as `docker`; chooses among a blueprint's images.
    pub fn engine_kind(&self) -> &str {
        &self.0.plugin.engine_kind
    }

    /// How often contact with the engine was lost since the start, however briefly. The same number
    /// before and after: whatever ended in between, it was not with the engine.
    pub fn interruptions(&self) -> u64 {
        self.0.engine.interruptions()
    }

    /// Asks the engine what it is and can do.
    pub async fn probe(&self) -> Result<NodeHealth, PluginError> {
        let interruptions = self.interruptions();
        let how = self.reads("probe", Scope::node(&self.0.installation));
        let mut health = self
            .call(how, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_probe(&mut store, &node)
                    .await
            })
            .await?;
        let hint = convert::hint(&mut health)?;
        let health = convert::health(health)?;
        *self.hint() = (interruptions, hint);
        Ok(health)
    }

    fn hint(&self) -> MutexGuard<'_, (u64, String)> {
        self.0.hint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a guest is told of the last probe.
    fn last_hint(&self) -> String {
        let hint = self.hint();
        let (interruptions, text) = &*hint;
        match *interruptions == self.interruptions() {
            true => text.clone(),
            false => String::new(),
        }
    }

    /// Moves an instance towards existing and running as specified. `secrets` are those that the
    /// blueprint's files refer to; the guest sees none of them.
    pub async fn ensure(&self, spec: &Spec, secrets: &Secrets) -> Result<Report, PluginError> {
        let scope = Scope::create(&self.0.installation, spec, self.engine_kind());
        let how = How {
            secrets: secrets.clone(),
            ..self.changes("ensure", scope)
        };
        let given = convert::spec(spec);
        let report = self
            .call(how, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_ensure(&mut store, &node, &given)
                    .await
            })
            .await?;
        convert::report(report, spec.target.generation)
    }

    /// Starts an instance that exists, at its target's size.
    pub async fn start(&self, target: &Target) -> Result<Report, PluginError> {
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

    /// Gives an instance that does not run a larger disk, with the content of the old one.
    pub async fn grow(&self, spec: &Spec) -> Result<Report, PluginError> {
        let scope = Scope::create(&self.0.installation, spec, self.engine_kind());
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

    /// Stops an instance: gracefully for so long, then hard. The call may take that much longer.
    pub async fn stop(&self, target: &Target, grace: Duration) -> Result<Report, PluginError> {
        let given = convert::target(target);
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        let how = How {
            grace,
            ..self.change("stop", target)
        };
        let report = self
            .call(how, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_stop(&mut store, &node, &given, grace_ms)
                    .await
            })
            .await?;
        convert::report(report, target.generation)
    }

    /// Applies the target's size, all of it or nothing.
    pub async fn resize(&self, target: &Target) -> Result<Report, PluginError> {
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

    /// Makes exactly the target's ports open on its public address, while it runs. Drivers without
    /// the interface `ports` do that in `ensure` and `start`.
    pub async fn set_ports(&self, target: &Target) -> Result<(), PluginError> {
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

    /// Removes an instance and everything it had on the node.
    pub async fn delete(&self, target: &Target) -> Result<Report, PluginError> {
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

    /// Where an instance is. The report carries the caller's `generation`.
    pub async fn inspect(&self, tag: Tag, generation: Generation) -> Result<Report, PluginError> {
        let given = convert::tag(tag);
        let report = self
            .call(
                self.reads("inspect", Scope::read(&self.0.installation, tag)),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_inspect(&mut store, &node, &given)
                        .await
                },
            )
            .await?;
        // The function takes no generation, so the guest can't know it.
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
        let how = How {
            transfer: TRANSFER_LIST,
            ..self.reads("list", Scope::node(&self.0.installation))
        };
        let list = self
            .call(how, |mut store, guest, node| async move {
                guest
                    .wharf_plugin_driver()
                    .call_list(&mut store, &node)
                    .await
            })
            .await?;
        convert::list(list, self.name())
    }

    /// Live usage of a running instance; that of its disk only if asked.
    pub async fn stats(&self, tag: Tag, disk: bool) -> Result<Usage, PluginError> {
        let given = convert::tag(tag);
        let usage = self
            .call(
                self.reads("stats", Scope::read(&self.0.installation, tag)),
                |mut store, guest, node| async move {
                    guest
                        .wharf_plugin_driver()
                        .call_stats(&mut store, &node, &given, disk)
                        .await
                },
            )
            .await?;
        Ok(convert::usage(usage))
    }

    fn reads(&self, function: &'static str, scope: Scope) -> How {
        How {
            function,
            sort: Sort::Read,
            scope,
            secrets: Secrets::default(),
            grace: Duration::ZERO,
            transfer: TRANSFER,
        }
    }

    fn changes(&self, function: &'static str, scope: Scope) -> How {
        How {
            sort: Sort::Change,
            ..self.reads(function, scope)
        }
    }

    fn change(&self, function: &'static str, target: &Target) -> How {
        self.changes(function, Scope::change(&self.0.installation, target))
    }

    async fn call<T, F, Fut>(&self, how: How, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>, WitDriver, wit::Node) -> Fut,
        Fut: Future<Output = wasmtime::Result<Result<T, types::Error>>>,
    {
        let pre = self.0.plugin.pre.clone();
        self.enter(how, |mut store, node| async move {
            let guest = pre.instantiate_async(&mut store).await?;
            body(store, guest, node).await
        })
        .await
    }

    /// One call: a place in the queue, a fresh guest's limits, and the engine within its scope.
    async fn enter<T, F, Fut>(&self, how: How, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>, wit::Node) -> Fut,
        Fut: Future<Output = wasmtime::Result<Result<T, types::Error>>>,
    {
        let inner = &*self.0;
        let lane = match how.sort {
            Sort::Read => &inner.reads,
            Sort::Change => &inner.changes,
        };
        let _place = lane.enter().await?;
        let wall = inner.caller.limits().wall.saturating_add(how.grace);
        let deadline = Instant::now() + wall;
        let call = Call {
            plugin: Arc::clone(&inner.plugin.name),
            node: Some(inner.engine.name.clone()),
            function: how.function,
            access: Some(Access::new(
                Arc::clone(&inner.engine),
                how.scope,
                how.secrets,
                deadline,
            )),
            wall,
            transfer: how.transfer,
        };
        let node = wit::Node {
            name: inner.engine.name.0.clone(),
            installation: inner.installation.clone(),
            settings: inner.settings.clone(),
            hint: self.last_hint(),
        };
        inner
            .caller
            .run(call, |store| body(store, node))
            .await?
            .map_err(convert_error::from_guest)
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
