//! Long reads, apart from the tasks that must not wait for them.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, spawn_blocking};

/// Does work that takes a while on a blocking thread. A runtime of one thread, such as that of the simulator,
/// does it in place: another thread would leave the order of events to chance.
pub async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work());
    }
    spawn_blocking(work).await
}
