//! The process's one wasmtime engine.

use super::config::CallLimits;
use super::error::LoadError;
use super::guest::MAX_TABLE_ELEMENTS;
use tracing::warn;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Tasks that a thread of guests runs between two polls for I/O. A guest may run for a whole tick; with
/// tokio's default of 61 tasks a few guests would delay I/O by half a second.
pub const EVENT_INTERVAL: u32 = 3;
/// Address space of one guest's memory and the upper bound of its limit, bytes.
const MEMORY_SLOT: usize = 64 << 20;
/// Memory of a slot that stays mapped between guests, bytes. Together with the page-map scan it saves
/// most unmapping, for which threads would wait on each other.
const KEPT_RESIDENT: usize = 2 << 20;
/// Core instances in one component; guests in Python have 39.
const CORE_INSTANCES: u32 = 64;
/// Tables in one component.
const TABLES: u32 = 40;
/// The program's own target. A target that is named makes wasmtime compile for the baseline CPU of the
/// architecture, so that a compiled plugin fits every machine of it.
const TARGET: &str = env!("WHARF_TARGET");

/// Makes the engine. Its pool takes about 36 GB of address space, but little memory. Where that is not
/// available, guests are allocated on demand, which makes calls several times slower.
pub fn engine(limits: &CallLimits) -> Result<Engine, LoadError> {
    let unusable = |error: wasmtime::Error| LoadError::Runtime(error.to_string());
    let mut config = base().map_err(unusable)?;
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    let engine = match Engine::new(&config) {
        Ok(engine) => engine,
        Err(error) => {
            warn!(%error, "no pool for plugin guests (is the address space limited?); calls will be slower");
            base()
                .and_then(|config| Engine::new(&config))
                .map_err(unusable)?
        }
    };
    Ok(engine)
}

fn base() -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config
        .target(TARGET)?
        .epoch_interruption(true)
        .max_wasm_stack(512 << 10)
        .async_stack_size(1 << 20)
        .memory_reservation(MEMORY_SLOT as u64)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_backtrace_max_frames(None);
    Ok(config)
}

fn pool(limits: &CallLimits) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(limits.guests)
        .total_core_instances(limits.guests.saturating_mul(4).max(CORE_INSTANCES))
        .total_memories(limits.guests)
        .total_tables(limits.guests.saturating_mul(4).max(TABLES))
        .total_stacks(limits.guests)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_tables_per_component(TABLES)
        .max_memory_size(MEMORY_SLOT)
        .table_elements(MAX_TABLE_ELEMENTS)
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(KEPT_RESIDENT)
        .table_keep_resident(MAX_TABLE_ELEMENTS * size_of::<usize>());
    pool
}
