//! The imports of guests: `log`, and `engine` for drivers, and a WASI that reaches nothing.

mod engine;
mod log;

use super::bindings::{FlavorProvider, NodeDriver, driver_types, types};
use super::guest::Guest;
use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

/// The linker of drivers.
pub fn driver_linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    NodeDriver::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    Ok(linker)
}

/// The linker of flavor providers.
pub fn flavor_linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    FlavorProvider::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    Ok(linker)
}

impl types::Host for Guest {}
impl driver_types::Host for Guest {}
