//! The host's state of one guest, for the length of one call.

use super::log_sink::LogSink;
use super::stdio::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasmtime::ResourceLimiter;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wharf_engine::EngineAccess;

/// Most elements of all tables together.
pub const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Most WASI handles.
const MAX_HANDLES: usize = 1000;
/// Most random bytes for one request.
const MAX_RANDOM: u64 = 64 << 10;

/// The state of one guest.
pub struct Guest {
    /// Memory accounting.
    pub limiter: Limiter,
    /// Access to the engine; drivers only.
    pub access: Option<EngineAccess>,
    /// Takes its log lines.
    pub log: LogSink,
    wasi: WasiCtx,
    table: ResourceTable,
}

impl Guest {
    /// A guest with no file system, environment, arguments, input, or sockets. Its output becomes
    /// log lines.
    pub fn new(memory: usize, access: Option<EngineAccess>, log: LogSink) -> Self {
        let mut wasi = WasiCtx::builder();
        wasi.stdout(Stdio::new(log.clone(), false))
            .stderr(Stdio::new(log.clone(), true))
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .max_random_size(MAX_RANDOM);
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        Self {
            limiter: Limiter::new(memory),
            access,
            log,
            wasi: wasi.build(),
            table,
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// Bounds the memory and the tables of all modules of a guest together.
#[derive(Debug)]
pub struct Limiter {
    memory_left: usize,
    elements_left: usize,
    denied: Arc<AtomicBool>,
}

impl Limiter {
    fn new(memory: usize) -> Self {
        Self {
            memory_left: memory,
            elements_left: MAX_TABLE_ELEMENTS,
            denied: Arc::default(),
        }
    }

    /// Becomes true when memory is denied.
    pub fn denied(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.denied)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        now: usize,
        then: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = take(&mut self.memory_left, now, then);
        if !granted {
            self.denied.store(true, Ordering::Relaxed);
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        now: usize,
        then: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(take(&mut self.elements_left, now, then))
    }
}

fn take(left: &mut usize, now: usize, then: usize) -> bool {
    match left.checked_sub(then.saturating_sub(now)) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}
