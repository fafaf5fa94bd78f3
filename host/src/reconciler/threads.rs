//! The threads of the reconciler and of all guests. A thousand creates at once, or guests that
//! compute, take neither the threads nor, where cores are short, the processor's time from the
//! interface.

use crate::plugin::EVENT_INTERVAL;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// How much nicer than the interface's: about a third of its share of a busy core, never nothing.
const NICENESS: i32 = 5;

/// Threads; what still runs on them ends with this.
pub struct Threads {
    handle: Handle,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl Threads {
    /// As many as there are cores.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .event_interval(EVENT_INTERVAL)
            .thread_name("reconciler")
            .on_thread_start(|| {
                // Linux counts niceness by thread. It can be forbidden, and is then done without.
                let _ = rustix::process::nice(NICENESS);
            })
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// To run more on them.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends what runs on them, and them; what a thread is in the middle of has so long to end.
    pub async fn end(mut self, patience: Duration) {
        if let Some(runtime) = self.runtime.take() {
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(patience));
            drop(ended.await);
        }
    }

    /// Runs a task, with all that it spawns.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.spawn(task)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
