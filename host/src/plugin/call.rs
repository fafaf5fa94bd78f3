//! One call of a guest, from instantiation to its end, under its limits.

use super::clock::Clock;
use super::config::Limits;
use super::error::LoadError;
use super::guest::Guest;
use super::imports::log::LogSink;
use super::meter::{Meter, Metered};
use super::queue::Lane;
use crate::domain::driver::PluginError;
use crate::domain::ids::NodeId;
use crate::engine::Access;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};

/// Most bytes a guest may hand over at once, as arguments or results.
pub const TRANSFER: usize = 16 << 20;
/// The same for a node's list, which grows with its instances.
pub const TRANSFER_LIST: usize = 64 << 20;
/// Longest wait for a place among all guests of the process.
const SLOT_WAIT: Duration = Duration::from_secs(30);
/// Calls that may wait for one.
const SLOT_QUEUE: usize = 16_384;

/// Runs calls.
#[derive(Debug)]
pub struct Caller {
    engine: Engine,
    limits: Limits,
    slots: Lane,
    clock: Clock,
}

/// What one call is and what it may use.
pub struct Call {
    /// The plugin, for the log.
    pub plugin: Arc<str>,
    /// The node, for the log; none for flavors.
    pub node: Option<NodeId>,
    /// The function, for the log.
    pub function: &'static str,
    /// The way to the engine.
    pub access: Option<Access>,
    /// Wall-clock time.
    pub wall: Duration,
    /// Bytes handed over at once.
    pub transfer: usize,
}

impl Caller {
    /// For one process.
    pub fn new(engine: Engine, limits: Limits) -> Result<Self, LoadError> {
        let places = usize::try_from(limits.guests).unwrap_or(usize::MAX);
        Ok(Self {
            clock: Clock::start(engine.clone())?,
            engine,
            limits,
            slots: Lane::new(places, SLOT_QUEUE, SLOT_WAIT),
        })
    }

    /// The engine that components are compiled for.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The limits of every call.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs `body` on a fresh guest store and drops the store with it, whatever happens.
    pub async fn run<T, F, Fut>(&self, call: Call, body: F) -> Result<T, PluginError>
    where
        F: FnOnce(Store<Guest>) -> Fut,
        Fut: Future<Output = wasmtime::Result<T>>,
    {
        let _slot = self.slots.enter().await?;
        let _ticking = self.clock.guest();
        let log = LogSink::new(call.plugin, call.node, call.function);
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

    /// Says in the operator's words why there is no result.
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
