//! The driver of one node, with a method for each function of its interface.

use super::bindings::driver_types as wit;
use super::bindings::types;
use super::call::{Call, CallRunner, TRANSFER, TRANSFER_LIST};
use super::config::NodeLimits;
use super::convert::{driver as convert, error_from_guest};
use super::driver_calls::DriverCalls;
use super::guest::Guest;
use super::load::DriverPlugin;
use super::metrics::Queued;
use super::queue::Queue;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wasmtime::Store;
use wharf_domain::driver::{
    DriverReport, DriverTarget, NodeHealth, Observed, PluginError, ResourceUsage, Spec, StoreMark,
    Surroundings, Tag,
};
use wharf_domain::ids::{Generation, NodeId};
use wharf_domain::secret::InstanceSecrets;
use wharf_engine::{CallScope, EngineAccess, EngineNode, Transport};

/// The driver of one node: calls of a plugin.
pub struct GuestDriver {
    runner: Arc<CallRunner>,
    pub(super) plugin: Arc<DriverPlugin>,
    engine: Arc<EngineNode>,
    pub(super) installation: String,
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
pub(super) enum CallKind {
    Read,
    Change,
    Usage,
}

/// Calls a function of a driver, or one of an optional interface, whose compiled world comes before `=>`.
macro_rules! call {
    ($driver:ident, $options:expr, $function:ident($($argument:expr),*)) => {{
        let pre = $driver.plugin.pre.clone();
        call!($driver, $options, pre => wharf_plugin_driver.$function($($argument),*))
    }};
    ($driver:ident, $options:expr, $pre:ident => $interface:ident.$function:ident($($argument:expr),*)) => {{
        let called = $driver.enter($options, |mut store, node| async move {
            let guest = $pre.instantiate_async(&mut store).await?;
            let interface = guest.$interface();
            interface.$function(&mut store, &node, $($argument),*).await
        });
        called.await
    }};
}

pub(super) use call;

/// The compiled world of an optional interface, which has these functions.
pub(super) fn supported<T: Clone>(world: Option<&T>, functions: &str) -> Result<T, PluginError> {
    let missing = || PluginError::Unsupported(functions.to_owned());
    world.cloned().ok_or_else(missing)
}

/// The differences between the functions.
pub(super) struct CallOptions {
    pub(super) function: &'static str,
    pub(super) kind: CallKind,
    pub(super) scope: CallScope,
    pub(super) secrets: InstanceSecrets,
    pub(super) grace: Duration,
    pub(super) transfer: usize,
}

impl GuestDriver {
    pub(super) fn new(
        runner: Arc<CallRunner>,
        plugin: Arc<DriverPlugin>,
        engine: EngineNode,
        installation: String,
        settings: String,
        limits: NodeLimits,
    ) -> Self {
        let queue = |places| Queue::new(places, limits.waiting, limits.wait);
        Self {
            runner,
            plugin,
            engine: Arc::new(engine),
            installation,
            settings,
            probe_cache: Mutex::default(),
            changes: queue(limits.changes),
            reads: queue(limits.reads),
            usage: queue(limits.usage),
        }
    }

    /// The text of the last probe; empty if contact was lost since.
    fn cached_probe(&self) -> String {
        let cache = self.probe_cache.lock();
        let (interruptions, text) = &*cache;
        if *interruptions == self.interruptions() {
            text.clone()
        } else {
            String::new()
        }
    }

    pub(super) fn reads(&self, function: &'static str, scope: CallScope) -> CallOptions {
        CallOptions {
            function,
            kind: CallKind::Read,
            scope,
            secrets: InstanceSecrets::default(),
            grace: Duration::ZERO,
            transfer: TRANSFER,
        }
    }

    pub(super) fn changes(&self, function: &'static str, scope: CallScope) -> CallOptions {
        CallOptions {
            kind: CallKind::Change,
            ..self.reads(function, scope)
        }
    }

    pub(super) fn change(&self, function: &'static str, target: &DriverTarget) -> CallOptions {
        self.changes(function, CallScope::change(&self.installation, target))
    }

    /// Makes one call: waits for a place in the queue, and gives a fresh guest the engine within its scope.
    pub(super) async fn enter<T, F, Fut>(
        &self,
        options: CallOptions,
        body: F,
    ) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>, wit::Node) -> Fut,
        Fut: Future<Output = wasmtime::Result<Result<T, types::Error>>>,
    {
        let queue = match options.kind {
            CallKind::Read => &self.reads,
            CallKind::Usage => &self.usage,
            CallKind::Change => &self.changes,
        };
        let queued = Queued::new(&self.runner.metrics().queued);
        let _place = queue.enter().await?;
        drop(queued);
        let wall = self.runner.limits().wall.saturating_add(options.grace);
        let deadline = std::time::Instant::now() + wall;
        let call = Call {
            plugin: Arc::clone(&self.plugin.name),
            node: Some(self.engine.name.clone()),
            function: options.function,
            access: Some(EngineAccess::new(
                Arc::clone(&self.engine),
                options.scope,
                options.secrets,
                deadline,
            )),
            wall,
            transfer: options.transfer,
        };
        let node = wit::Node {
            name: self.engine.name.0.clone(),
            installation: self.installation.clone(),
            settings: self.settings.clone(),
            hint: self.cached_probe(),
        };
        self.runner
            .run(call, |store| body(store, node))
            .await?
            .map_err(error_from_guest)
    }
}

#[async_trait]
impl DriverCalls for GuestDriver {
    fn name(&self) -> &NodeId {
        &self.engine.name
    }

    fn engine_kind(&self) -> &str {
        &self.plugin.engine_kind
    }

    fn has_setting(&self, name: &str) -> bool {
        self.engine.has_setting(name)
    }

    fn pulls_with_accounts(&self) -> bool {
        self.engine.pulls_with_accounts()
    }

    fn transport(&self) -> Option<&Transport> {
        Some(self.engine.transport())
    }

    fn last_answer(&self) -> Option<Instant> {
        self.engine.last_answer().map(Instant::from_std)
    }

    fn interruptions(&self) -> u64 {
        self.engine.interruptions()
    }

    async fn probe(&self) -> Result<NodeHealth, PluginError> {
        let interruptions = self.interruptions();
        let options = self.reads("probe", CallScope::node(&self.installation));
        let mut health = call!(self, options, call_probe())?;
        let text = convert::probe_cache(&mut health)?;
        let health = convert::health(health)?;
        *self.probe_cache.lock() = (interruptions, text);
        Ok(health)
    }

    async fn ensure(
        &self,
        spec: &Spec,
        secrets: &InstanceSecrets,
    ) -> Result<DriverReport, PluginError> {
        let scope = CallScope::create(&self.installation, spec, self.engine_kind());
        let options = CallOptions {
            secrets: secrets.clone(),
            ..self.changes("ensure", scope)
        };
        let given = convert::spec(spec);
        let report = call!(self, options, call_ensure(&given))?;
        convert::report(report, spec.target.generation)
    }

    async fn start(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let options = self.change("start", target);
        let report = call!(self, options, call_start(&given))?;
        convert::report(report, target.generation)
    }

    async fn grow(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let scope = CallScope::create(&self.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let options = self.changes("grow", scope);
        let report = call!(self, options, call_grow(&given))?;
        convert::report(report, spec.target.generation)
    }

    fn moves(&self) -> bool {
        self.plugin.with_moves.is_some()
    }

    async fn move_here(&self, spec: &Spec) -> Result<DriverReport, PluginError> {
        let pre = supported(self.plugin.with_moves.as_ref(), "moves")?;
        let scope = CallScope::moves(&self.installation, spec, self.engine_kind());
        let given = convert::spec(spec);
        let options = self.changes("move-here", scope);
        let report = call!(self, options, pre => wharf_plugin_moves.call_move_here(&given));
        convert::report(report?, spec.target.generation)
    }

    async fn stop(
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
        let report = call!(self, options, call_stop(&given, grace_ms))?;
        convert::report(report, target.generation)
    }

    async fn resize(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let options = self.change("resize", target);
        let report = call!(self, options, call_resize(&given))?;
        convert::report(report, target.generation)
    }

    async fn set_ports(&self, target: &DriverTarget) -> Result<(), PluginError> {
        let Some(pre) = self.plugin.with_ports.clone() else {
            return Ok(());
        };
        let given = convert::target(target);
        let options = self.change("set-ports", target);
        call!(self, options, pre => wharf_plugin_ports.call_set_ports(&given))
    }

    async fn identify(&self) -> Result<StoreMark, PluginError> {
        let Some(pre) = self.plugin.with_identity.clone() else {
            return Ok(StoreMark::Unsupported);
        };
        let options = self.reads("identify", CallScope::node(&self.installation));
        let mark = call!(self, options, pre => wharf_plugin_identity.call_identify());
        convert::mark(mark)
    }

    async fn mark(&self, mark: &str) -> Result<(), PluginError> {
        let pre = supported(self.plugin.with_identity.as_ref(), "marks of stores")?;
        let options = self.changes("mark", CallScope::mark(&self.installation, mark));
        let mark = mark.to_owned();
        call!(self, options, pre => wharf_plugin_identity.call_mark(&mark))
    }

    async fn survey(&self, images: &[String]) -> Result<Option<Surroundings>, PluginError> {
        let Some(pre) = self.plugin.with_survey.clone() else {
            return Ok(None);
        };
        let options = self.reads("look", CallScope::survey(&self.installation, images));
        let images = images.to_vec();
        let found = call!(self, options, pre => wharf_plugin_survey.call_look(&images));
        Ok(Some(convert::surroundings(found?)))
    }

    async fn delete(&self, target: &DriverTarget) -> Result<DriverReport, PluginError> {
        let given = convert::target(target);
        let options = self.change("delete", target);
        let report = call!(self, options, call_delete(&given))?;
        convert::report(report, target.generation)
    }

    async fn inspect(&self, tag: Tag, generation: Generation) -> Result<DriverReport, PluginError> {
        let given = convert::tag(tag);
        let options = self.reads("inspect", CallScope::read(&self.installation, tag));
        let report = call!(self, options, call_inspect(&given))?;
        // The function of the interface has no generation.
        convert::report(
            wit::Report {
                generation: generation.0,
                ..report
            },
            generation,
        )
    }

    async fn list(&self) -> Result<Vec<Observed>, PluginError> {
        let options = CallOptions {
            transfer: TRANSFER_LIST,
            ..self.reads("list", CallScope::node(&self.installation))
        };
        let list = call!(self, options, call_list())?;
        convert::list(list, self.name())
    }

    async fn stats(&self, tag: Tag, disk: bool) -> Result<ResourceUsage, PluginError> {
        let given = convert::tag(tag);
        let options = CallOptions {
            kind: CallKind::Usage,
            ..self.reads("stats", CallScope::read(&self.installation, tag))
        };
        let usage = call!(self, options, call_stats(&given, disk))?;
        Ok(convert::usage(usage))
    }
}
