//! Calls of guests under their limits, from instantiation to the end.

use super::clock;
use super::config::CallLimits;
use super::error::LoadError;
use super::guest::Guest;
use super::log_sink::LogSink;
use super::meter::{Meter, Metered};
use super::metrics::{PluginMetrics, Queued};
use super::queue::Queue;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{Instrument, debug, error_span};
use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wharf_domain::driver::PluginError;
use wharf_domain::ids::NodeId;
use wharf_engine::EngineAccess;

/// Most bytes a guest may hand over at once, as arguments or results.
pub const TRANSFER: usize = 16 << 20;
/// Like [`TRANSFER`], for a node's list, which grows with its instances.
pub const TRANSFER_LIST: usize = 64 << 20;
/// Longest wait for a place among all guests of the process.
const SLOT_WAIT: Duration = Duration::from_secs(30);
/// Calls that may wait for one.
const SLOT_QUEUE: usize = 16_384;

/// Runs calls.
#[derive(Debug)]
pub struct CallRunner {
    engine: Engine,
    limits: CallLimits,
    slots: Queue,
    metrics: PluginMetrics,
}

/// A call and its limits.
pub struct Call {
    /// Name of the plugin.
    pub plugin: Arc<str>,
    /// The node; `None` for flavors.
    pub node: Option<NodeId>,
    /// Name of the function.
    pub function: &'static str,
    /// Access to the engine.
    pub access: Option<EngineAccess>,
    /// Wall-clock time.
    pub wall: Duration,
    /// The most bytes of arguments or results.
    pub transfer: usize,
}

impl CallRunner {
    /// Starts the epoch clock, too.
    pub fn new(engine: Engine, limits: CallLimits) -> Result<Self, LoadError> {
        let places = usize::try_from(limits.guests).unwrap_or(usize::MAX);
        clock::start(&engine)?;
        Ok(Self {
            engine,
            limits,
            slots: Queue::new(places, SLOT_QUEUE, SLOT_WAIT),
            metrics: PluginMetrics::new(),
        })
    }

    /// The engine that components are compiled for.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Figures about calls.
    pub fn metrics(&self) -> &PluginMetrics {
        &self.metrics
    }

    /// The limits of every call.
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Runs `body` on a fresh guest store, in a span, and drops the store with it.
    pub async fn run<T, F, Fut>(&self, call: Call, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>) -> Fut,
        Fut: Future<Output = wasmtime::Result<T>>,
    {
        // Lines of every level name the call.
        let span = error_span!(
            "call",
            node = call.node.as_ref().map(|node| node.0.as_str()),
            plugin = %call.plugin,
            function = call.function,
        );
        let (begin, called) = (Instant::now(), call.function);
        let answer = self.run_in_span(call, body).instrument(span.clone()).await;
        self.metrics.called(called, &answer, begin.elapsed());
        let ms = begin.elapsed().as_millis() as u64;
        match &answer {
            Ok(_) => debug!(parent: &span, ms, "call ended"),
            Err(error) => debug!(parent: &span, ms, %error, "call failed"),
        }
        answer
    }

    async fn run_in_span<T, F, Fut>(&self, call: Call, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>) -> Fut,
        Fut: Future<Output = wasmtime::Result<T>>,
    {
        let queued = Queued::new(&self.metrics.queued);
        let _slot = self.slots.enter().await?;
        drop(queued);
        let log = LogSink::default();
        let meter = Arc::new(Meter::new(self.limits.cpu));
        let guest = Guest::new(self.limits.memory, call.access, log.clone());
        let denied = guest.limiter.denied();
        let mut store = Store::new(&self.engine, guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(call.transfer);
        store.set_epoch_deadline(1);
        let watch = Arc::clone(&meter);
        store.epoch_deadline_callback(move |_| {
            if watch.check() {
                return Ok(UpdateDeadline::Interrupt);
            }
            Ok(UpdateDeadline::Yield(1))
        });
        let ended =
            tokio::time::timeout(call.wall, Metered::new(Arc::clone(&meter), body(store))).await;
        match ended {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.fault(&error, &meter, &denied, &log)),
            Err(_) => Err(PluginError::Fault(format!(
                "no answer within {} ms",
                call.wall.as_millis()
            ))),
        }
    }

    /// Describes for the operator why there is no result.
    fn fault(
        &self,
        error: &wasmtime::Error,
        meter: &Meter,
        denied: &AtomicBool,
        log: &LogSink,
    ) -> PluginError {
        if error.is::<PoolConcurrencyLimitError>() {
            return PluginError::Busy;
        }
        let mut why = if meter.exceeded() {
            format!("more than {} ms of CPU time", self.limits.cpu.as_millis())
        } else if let Some(trap) = error.downcast_ref::<Trap>() {
            format!("trap: {trap}")
        } else {
            error.root_cause().to_string()
        };
        if denied.load(Ordering::Relaxed) {
            why.push_str(&format!(
                "; it asked for more than {} MiB of memory",
                self.limits.memory >> 20
            ));
        }
        let words = log.last_words();
        if !words.is_empty() {
            why.push_str("; it said: ");
            why.push_str(&words);
        }
        PluginError::Fault(why)
    }
}
