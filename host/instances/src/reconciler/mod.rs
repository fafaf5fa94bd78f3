//! The reconciler: it makes nodes follow the database. A nudge or a tick only wakes it; the rows say
//! what to do. Every step is idempotent, so the rows continue what a crash interrupted.

mod allocation;
mod attach;
mod attempt;
mod carry;
mod differences;
mod drainer;
mod fetch_volume;
mod follow;
mod grow;
mod host_key;
mod images;
mod keeper;
mod kept_differences;
mod kept_looks;
mod limits;
mod make;
mod observe;
mod on_node;
mod plan;
mod reach;
mod receive;
mod relocate;
mod resize;
mod restore;
mod spec;
mod stepped;
mod stop;
mod store;
mod supervise;
mod tasks;
mod threads;
mod worker;
mod writer;

use crate::snapshots::SnapshotPlans;
use crate::{App, Nudge, plans, stats};
use keeper::Keeper;
use on_node::OnNode;
use std::sync::Arc;
use std::time::Duration;
use tasks::Tasks;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::interval;
use wharf_db::Read;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;

pub(super) use attempt::{LATE, NO_CONTENT};
pub(crate) use supervise::supervise;
pub use threads::Threads;

/// How often the database is read for work whose nudge was lost.
const TICK: Duration = Duration::from_secs(5);
/// Proofs of limits at once, on all nodes. Each may have some MiB in memory.
const PROOFS: usize = 4;

/// Starts the keepers of one kind, one for each node.
fn keep<K: OnNode>(app: &Arc<App>, observers: &mut JoinSet<()>) {
    for (node, driver) in &app.drivers {
        let (app, node, driver) = (Arc::clone(app), node.clone(), driver.clone());
        observers.spawn(async move {
            let name = format!("the keeper of each {} of node {node}", K::WORD);
            let start = || Keeper::<K>::new(Arc::clone(&app), node.clone(), driver.clone()).run();
            supervise(&name, start).await;
        });
    }
}

/// Runs until `stop` changes. Attempts in progress are aborted; the next start continues them.
pub async fn run(
    app: Arc<App>,
    mut nudged: mpsc::Receiver<Nudge>,
    mut stop: watch::Receiver<bool>,
) {
    let tasks = Arc::new(Tasks::new(&app));
    let mut observers = JoinSet::new();
    for (n, (node, driver)) in (1_u32..).zip(&app.drivers) {
        let share = f64::from(n) / app.drivers.len() as f64;
        let (app, tasks) = (Arc::clone(&app), Arc::clone(&tasks));
        let (node, driver) = (node.clone(), driver.clone());
        observers.spawn(async move {
            let name = format!("the observer of node {node}");
            let start = || {
                let (app, tasks) = (Arc::clone(&app), Arc::clone(&tasks));
                observe::Observer::new(app, tasks, node.clone(), driver.clone()).run(share)
            };
            supervise(&name, start).await;
        });
    }
    keep::<OfVolume>(&app, &mut observers);
    keep::<OfSnapshot>(&app, &mut observers);
    for node in app.drivers.keys() {
        let (app, node) = (Arc::clone(&app), node.clone());
        observers.spawn(async move {
            let name = format!("the sampler of node {node}");
            let start = || stats::run(Arc::clone(&app), node.clone());
            supervise(&name, start).await;
        });
    }
    let proofs = Arc::new(Semaphore::new(PROOFS));
    for (node, driver) in &app.drivers {
        if !driver.has_volumes() {
            continue;
        }
        let (app, proofs) = (Arc::clone(&app), Arc::clone(&proofs));
        let (node, driver) = (node.clone(), driver.clone());
        observers.spawn(async move {
            let name = format!("the prover of the limits of node {node}");
            let start = || {
                let (app, proofs) = (Arc::clone(&app), Arc::clone(&proofs));
                limits::LimitsProver::new(app, node.clone(), driver.clone(), proofs).run()
            };
            supervise(&name, start).await;
        });
    }
    let drained = Arc::clone(&app);
    observers.spawn(async move {
        let start = || drainer::Drainer::new(Arc::clone(&drained)).run();
        supervise("the drainer", start).await;
    });
    observers.spawn(plans::carry_out(SnapshotPlans(Arc::clone(&app))));
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            // In this order, so that nudges hold up no tick.
            biased;
            _ = stop.changed() => break,
            _ = tick.tick() => {
                app.inventory.offer_again(app.clock.now());
                match app.db.read(|rows| rows.pending()) {
                    Ok(pending) => {
                        pending.into_iter().for_each(|id| tasks.start(&app, id, None));
                    }
                    Err(error) => {
                        tracing::error!(error = %error.chain(), "cannot read the pending instances");
                    }
                }
            },
            nudge = nudged.recv() => match nudge {
                Some(nudge) => tasks.wake(&app, nudge.instance, Some(nudge.request_id)),
                None => break,
            },
        }
    }
    observers.shutdown().await;
    tasks.shutdown();
}
