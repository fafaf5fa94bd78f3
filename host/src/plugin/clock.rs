//! The epoch clock: a thread that advances the engine's epoch, so that running guests yield.

use super::error::LoadError;
use std::thread;
use std::time::Duration;
use wasmtime::Engine;

/// The longest time that a guest runs before it yields.
const TICK: Duration = Duration::from_millis(10);

/// Starts the thread. It holds a weak reference and ends with the engine.
pub fn start(engine: &Engine) -> Result<(), LoadError> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            // A strong reference during the sleep would delay the engine's end.
            drop(engine);
            thread::sleep(TICK);
        }
    };
    let thread = thread::Builder::new().name("wasm-epoch".into());
    let started = thread.spawn(tick);
    started.map_err(|error| LoadError::Runtime(error.to_string()))?;
    Ok(())
}
