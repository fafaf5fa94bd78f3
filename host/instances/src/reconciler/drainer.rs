//! The drainer: it moves instances off drained nodes. The rows say which nodes are drained and which
//! instances may move, so that it continues after a crash.

use crate::App;
use crate::moves::{MoveProspect, MoveTarget, consents, drained, prospect};
use crate::snapshots::is_bound;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{MOVES, Read as _, Rows as _};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};

/// How often it looks for instances that can move since.
const TICK: Duration = Duration::from_secs(2);
/// Moves from one node at a time. Each copies a disk.
const AT_ONCE: usize = 4;
/// The pause before an instance is moved again after a failure, first and longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(3600));

/// Moves instances off drained nodes.
pub struct Drainer {
    app: Arc<App>,
    /// The moves of this process: the time before which the next move of an instance does not begin.
    tried: HashMap<InstanceId, (Instant, Duration)>,
}

impl Drainer {
    pub fn new(app: Arc<App>) -> Self {
        Self {
            app,
            tried: HashMap::new(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::error!(error = %error.chain(), "cannot move instances off drained nodes");
            }
            let notified = self.app.drains.notified();
            drop(tokio::time::timeout(TICK, notified).await);
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let drained = self.app.db.read(drained)?;
        if drained.is_empty() {
            self.tried.clear();
        }
        for node in drained {
            let to = self.app.destinations(&node);
            if !to.is_empty() {
                self.empty(&node, &to).await?;
            }
        }
        Ok(())
    }

    /// Begins the moves for which there is room on other nodes.
    async fn empty(&mut self, node: &NodeId, to: &[MoveTarget]) -> Result<(), Error> {
        let (under_way, movable) = self.app.db.read(|rows| {
            let (mut under_way, mut movable) = (0, Vec::new());
            for id in rows.on_node(node)? {
                // A damaged row does not keep the others on the node.
                let Ok(Some(row)) = rows.instance(id) else {
                    continue;
                };
                let (moving, consents) = (rows.get(&MOVES, id)?, consents(rows, row.owner)?);
                let bound = is_bound(rows, &row)?;
                match prospect(&row, moving.is_some(), consents, bound) {
                    MoveProspect::Moving => under_way += 1,
                    MoveProspect::Movable { .. } => movable.push(id),
                    _ => {}
                }
            }
            Ok((under_way, movable))
        })?;
        let mut free = AT_ONCE.saturating_sub(under_way);
        for id in movable {
            if free == 0 {
                break;
            }
            let now = Instant::now();
            let pause = match self.tried.get(&id) {
                Some((until, _)) if now < *until => continue,
                Some((_, pause)) => (*pause * 2).min(PAUSE.1),
                None => PAUSE.0,
            };
            if self.app.begin_move(id, to.to_vec(), false).await? {
                self.tried.insert(id, (now + pause, pause));
                free -= 1;
            }
        }
        Ok(())
    }
}
