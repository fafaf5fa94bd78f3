//! Looks at a node again and again: what it can do, and whether it still holds what it held.

use super::apply::Apply;
use super::spec;
use super::workers::Workers;
use crate::app::{App, now};
use crate::db::{Change, Changes, Read};
use crate::domain::driver::{Features, Observed, Phase, PluginError, Tag, Target};
use crate::domain::error::Error;
use crate::domain::ids::{InstanceId, NodeId};
use crate::domain::instance::{Instance, Intent, Progress};
use crate::domain::time::Timestamp;
use crate::placement::Supports;
use crate::plugin::NodeDriver;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Watches one node.
pub struct Observer {
    app: Arc<App>,
    workers: Arc<Workers>,
    node: NodeId,
    driver: NodeDriver,
    /// Nothing was missed since the last look: who is found dead died by itself. After a gap (a
    /// start of Wharf, a node out of reach, another boot of the engine) what is intended to run is
    /// started again.
    continuous: bool,
    boot_id: Option<String>,
    reachable: Option<bool>,
}

impl Observer {
    pub fn new(app: Arc<App>, workers: Arc<Workers>, node: NodeId, driver: NodeDriver) -> Self {
        Self {
            app,
            workers,
            node,
            driver,
            continuous: false,
            boot_id: None,
            reachable: None,
        }
    }

    pub async fn run(mut self) {
        let every = Duration::from_millis(self.app.config.limits.observe_every_ms.max(100));
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let looked = self.look().await;
            let reachable = looked.is_ok();
            if self.reachable != Some(reachable) {
                match &looked {
                    Ok(()) => tracing::info!(node = %self.node, "node is reachable"),
                    Err(error) => tracing::warn!(node = %self.node, %error, "node is out of reach"),
                }
                self.reachable = Some(reachable);
            }
            self.continuous = reachable;
        }
    }

    async fn look(&mut self) -> Result<(), PluginError> {
        let health = self.driver.probe().await?;
        if self
            .boot_id
            .as_ref()
            .is_some_and(|id| *id != health.boot_id)
        {
            self.continuous = false;
        }
        self.boot_id = Some(health.boot_id);
        self.note_features(health.features).await;
        let listed = self.driver.list().await?;
        if let Err(error) = self.compare(listed).await {
            tracing::error!(node = %self.node, %error, "cannot compare the node with the database");
        }
        Ok(())
    }

    async fn note_features(&self, features: Features) {
        if !self.app.features.set(&self.node, features) {
            return;
        }
        let node = self.node.clone();
        let supports = Supports {
            containers: features.containers,
            vms: features.vms,
            gpus: features.gpus,
        };
        let written = self.app.db.write(move |_| {
            let change = Change::Supports(node.clone(), supports);
            Ok(((), Changes::none().with(change)))
        });
        if let Err(error) = written.await {
            tracing::error!(node = %self.node, %error, "cannot note what the node supports");
        }
    }

    async fn compare(&self, listed: Vec<Observed>) -> Result<(), Error> {
        let mut there: HashMap<InstanceId, Observed> = HashMap::new();
        for observed in listed {
            there.insert(observed.tag.instance, observed);
        }
        let mut suspects = Vec::new();
        self.app.db.read(|rows| {
            for id in rows.on_node(&self.node)? {
                let observed = there.remove(&id);
                if let Some(row) = rows.instance(id)?
                    && row.progress == Progress::Settled
                    && contradicts(&row, observed.as_ref())
                {
                    suspects.push(row);
                }
            }
            // What is left is known to nobody; but a row may have come after the list was made.
            let mut unknown = Vec::new();
            for id in there.keys() {
                if rows.instance(*id)?.is_some() {
                    unknown.push(*id);
                }
            }
            for id in unknown {
                there.remove(&id);
            }
            Ok(())
        })?;
        for row in suspects {
            self.examine(row).await?;
        }
        for orphan in there.into_values() {
            self.remove(&orphan.tag).await;
        }
        Ok(())
    }

    /// Asks about one instance again: the list may be older than the row.
    async fn examine(&self, row: Instance) -> Result<(), Error> {
        if self.workers.busy(row.id) {
            return Ok(());
        }
        let Ok(report) = self.driver.inspect(spec::tag(&row), row.generation).await else {
            return Ok(());
        };
        let apply = Apply {
            db: self.app.db.clone(),
            id: row.id,
            generation: row.generation,
        };
        let gone = match report.phase {
            Phase::Stopped(why) => why.unwrap_or_else(|| "stopped".to_owned()),
            Phase::Failed(why) => why,
            Phase::Absent => "the engine does not have it any more".to_owned(),
            Phase::Booting | Phase::Ready if row.intent == Intent::Stop => {
                tracing::warn!(instance = %row.id, "runs although it is stopped; stopping it");
                apply.pending(None).await?;
                self.workers.wake(row.id);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if row.intent != Intent::Run {
            return Ok(());
        }
        if self.continuous {
            tracing::info!(instance = %row.id, why = gone, "ended by itself");
            apply.died(gone).await?;
        } else {
            tracing::info!(instance = %row.id, why = gone, "not running after a gap; starting it");
            let patience = self.app.config.provisioning_deadline_s.saturating_mul(1000);
            let deadline = now()
                .0
                .saturating_add(i64::try_from(patience).unwrap_or(i64::MAX));
            apply.pending(Some(Timestamp(deadline))).await?;
            self.workers.wake(row.id);
        }
        Ok(())
    }

    /// An object of ours that no row knows: the late result of a call whose answer was lost.
    async fn remove(&self, tag: &Tag) {
        tracing::warn!(instance = %tag.instance, node = %self.node, "on the node, but in no row; removing it");
        let target = Target::orphan(*tag);
        if let Err(error) = self.driver.delete(&target).await {
            tracing::warn!(instance = %tag.instance, %error, "cannot remove it");
        }
    }
}

/// Whether a settled row and a line of the list do not go together.
fn contradicts(row: &Instance, observed: Option<&Observed>) -> bool {
    let runs = observed.is_some_and(|o| {
        o.tag.incarnation == row.incarnation && matches!(o.phase, Phase::Booting | Phase::Ready)
    });
    match row.intent {
        Intent::Run => !runs,
        Intent::Stop => runs,
        Intent::Delete => false,
    }
}
