//! The threads of the reconciler and of all guests. They are apart from the interface's threads and
//! have less priority, so that a thousand creates do not delay requests.

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use wharf_plugin::EVENT_INTERVAL;

/// Their niceness: on a busy core they get about a third of the interface's share.
const NICENESS: i32 = 5;

/// The threads. Dropping it ends their tasks.
pub struct Threads {
    handle: Handle,
    /// `None` only while `self` is dropped.
    runtime: Option<Runtime>,
}

impl Threads {
    /// Starts one thread for each core.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .event_interval(EVENT_INTERVAL)
            .thread_name("reconciler")
            .on_thread_start(|| {
                // Linux has a niceness for each thread. Where it may not be set, nothing changes.
                let _ = rustix::process::nice(NICENESS);
            })
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// A handle to spawn tasks with.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends the tasks and the threads. A thread has until the deadline to leave its present poll.
    #[expect(clippy::disallowed_methods, reason = "no simulation has these threads")]
    pub async fn end(mut self, deadline: Duration) {
        if let Some(runtime) = self.runtime.take() {
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(deadline));
            drop(ended.await);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
