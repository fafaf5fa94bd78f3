//! Makes nodes follow the database. It takes no input: woken by a nudge or a tick it reads what is
//! pending and acts. Every step is idempotent, so a crash at any point is continued from the rows.

mod apply;
mod newcomers;
mod observe;
mod plan;
mod reach;
mod spec;
mod threads;
mod work;
mod workers;

use crate::app::{App, Nudge};
use crate::db::Read;
use newcomers::{Newcomers, TURN};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use workers::Workers;

pub use threads::Threads;

/// How often the database is asked for work whose nudge was lost.
const TICK: Duration = Duration::from_secs(5);

/// Runs until `stop` says so; the steps under way are then cut off, and continued by the next
/// start.
pub async fn run(
    app: Arc<App>,
    mut nudged: mpsc::UnboundedReceiver<Nudge>,
    mut stop: watch::Receiver<bool>,
) {
    let workers = Arc::new(Workers::new(Arc::clone(&app)));
    let mut watching = tokio::task::JoinSet::new();
    for (n, (node, driver)) in (1_u32..).zip(&app.drivers) {
        let observer = observe::Observer::new(
            Arc::clone(&app),
            Arc::clone(&workers),
            node.clone(),
            driver.clone(),
        );
        let share = f64::from(n) / app.drivers.len() as f64;
        watching.spawn(observer.run(share));
    }
    let cores = available_parallelism().map_or(1, NonZero::get);
    let mut newcomers = Newcomers::new(cores);
    let (mut tick, mut turn) = (interval(TICK), interval(TURN));
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            nudge = nudged.recv() => match nudge {
                Some(Nudge::New(id)) => {
                    if newcomers.come(id, false, Instant::now()) {
                        workers.wake(id);
                    }
                }
                Some(Nudge::Changed(id)) => workers.wake(id),
                None => break,
            },
            _ = turn.tick(), if !newcomers.is_empty() => {
                let due = newcomers.due(false, Instant::now());
                due.into_iter().for_each(|id| workers.wake(id));
            }
            _ = tick.tick() => match app.db.read(|rows| rows.pending()) {
                Ok(pending) => pending
                    .into_iter()
                    .filter(|id| !newcomers.has(*id))
                    .for_each(|id| workers.ensure(id)),
                Err(error) => tracing::error!(%error, "cannot read what is pending"),
            },
        }
    }
    watching.shutdown().await;
    workers.shutdown();
}
