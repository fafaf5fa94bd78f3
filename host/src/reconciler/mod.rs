//! Makes nodes follow the database. It takes no input: woken by a nudge or a tick it reads what is
//! pending and acts. Every step is idempotent, so a crash at any point is continued from the rows.

mod apply;
mod observe;
mod plan;
mod reach;
mod spec;
mod threads;
mod work;
mod workers;

use crate::app::App;
use crate::db::Read;
use crate::domain::ids::InstanceId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use workers::Workers;

pub use threads::Threads;

/// How often the database is asked for work whose nudge was lost.
const TICK: Duration = Duration::from_secs(5);

/// Runs until `stop` says so; the steps under way are then cut off, and continued by the next
/// start.
pub async fn run(
    app: Arc<App>,
    mut nudged: mpsc::UnboundedReceiver<InstanceId>,
    mut stop: watch::Receiver<bool>,
) {
    let workers = Arc::new(Workers::new(Arc::clone(&app)));
    let mut watching = tokio::task::JoinSet::new();
    for (node, driver) in &app.drivers {
        let observer = observe::Observer::new(
            Arc::clone(&app),
            Arc::clone(&workers),
            node.clone(),
            driver.clone(),
        );
        watching.spawn(observer.run());
    }
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            id = nudged.recv() => match id {
                Some(id) => workers.wake(id),
                None => break,
            },
            _ = tick.tick() => match app.db.read(|rows| rows.pending()) {
                Ok(pending) => pending.into_iter().for_each(|id| workers.ensure(id)),
                Err(error) => tracing::error!(%error, "cannot read what is pending"),
            },
        }
    }
    watching.shutdown().await;
    workers.shutdown();
}
