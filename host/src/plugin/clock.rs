//! The clock of the guests: while any of them runs, all are looked at every tick. It stands still
//! while none does, for else it would be most of what an idle server costs.

use super::error::LoadError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;
use wasmtime::Engine;

/// How often a running guest is looked at.
const TICK: Duration = Duration::from_millis(10);

/// Its thread ends with it.
#[derive(Debug)]
pub struct Clock {
    state: Arc<State>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct State {
    guests: AtomicUsize,
    /// The thread waits, or is about to, to be told of a guest.
    still: AtomicBool,
    closed: AtomicBool,
}

impl State {
    fn is_needed(&self) -> bool {
        self.guests.load(Ordering::SeqCst) > 0 || self.closed.load(Ordering::SeqCst)
    }
}

impl Clock {
    /// For one engine.
    pub fn start(engine: Engine) -> Result<Self, LoadError> {
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("wasm-epoch".into())
            .spawn(move || serve(&of_thread, &engine))
            .map_err(|error| LoadError::Runtime(error.to_string()))?;
        Ok(Self {
            state,
            thread: thread.thread().clone(),
        })
    }

    /// It ticks until the result is dropped.
    pub fn guest(&self) -> Guest<'_> {
        self.state.guests.fetch_add(1, Ordering::SeqCst);
        self.wake();
        Guest(&self.state)
    }

    fn wake(&self) {
        if self.state.still.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.wake();
    }
}

/// A guest that runs.
pub struct Guest<'a>(&'a State);

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.0.guests.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(state: &State, engine: &Engine) {
    while !state.closed.load(Ordering::SeqCst) {
        // First said, then looked: whoever comes between sees it said.
        state.still.store(true, Ordering::SeqCst);
        while !state.is_needed() {
            std::thread::park();
        }
        state.still.store(false, Ordering::SeqCst);
        std::thread::sleep(TICK);
        engine.increment_epoch();
    }
}
