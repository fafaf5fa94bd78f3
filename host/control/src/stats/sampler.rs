//! The task that samples the instances of a node while somebody looks at them.

use crate::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wharf_db::Read;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::state::InstanceState;

/// Readings at once on one node. They leave places in its queue to other calls.
const AT_ONCE: usize = 8;
/// The shortest pause between two rounds.
const AT_LEAST: Duration = Duration::from_millis(50);

/// Samples until it is dropped.
pub async fn run(app: Arc<App>, node: NodeId) {
    loop {
        tokio::time::sleep(app.stats_interval().max(AT_LEAST)).await;
        if app.nodes.is_away(&node) {
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
        if let Err(error) = self.sample_in_time(&instance).await {
            tracing::debug!(instance = %id, error = %error.chain(), "cannot sample the usage");
            self.samples.spoil(id);
        }
    }
}
