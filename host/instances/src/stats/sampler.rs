//! The task that samples the instances of a node while users look at them.

use super::{answers, is_late};
use crate::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wharf_db::Read;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::state::InstanceState;

/// Readings at once on one node. They leave places in the queue of readings to first looks.
const AT_ONCE: usize = 8;
/// The shortest pause between two rounds.
const AT_LEAST: Duration = Duration::from_millis(50);

/// Samples until it is dropped.
pub async fn run(app: Arc<App>, node: NodeId) {
    loop {
        tokio::time::sleep(app.stats_interval().max(AT_LEAST)).await;
        if app.driver_in_reach(&node).is_err() {
            continue;
        }
        let mut readings = JoinSet::new();
        for id in app.samples.due(&node) {
            if readings.len() >= AT_ONCE {
                readings.join_next().await;
            }
            let app = Arc::clone(&app);
            readings.spawn(async move { app.sample_again(id).await });
        }
        while readings.join_next().await.is_some() {}
    }
}

impl App {
    async fn sample_again(&self, id: InstanceId) {
        let row = self.db.read(|rows| rows.instance(id)).ok().flatten();
        let Some(instance) = row.filter(|row| row.state() == InstanceState::Running) else {
            self.samples.forget(id);
            return;
        };
        let Some(driver) = self.drivers.get(&instance.node) else {
            return;
        };
        let sampled = self.sample_in_time(&instance, driver, self.stats_timeout());
        if let Err(error) = sampled.await {
            tracing::debug!(instance = %id, %error, "cannot sample the usage");
            if !is_late(&error) || !answers(driver) {
                self.samples.spoil(id);
            }
        }
    }
}
