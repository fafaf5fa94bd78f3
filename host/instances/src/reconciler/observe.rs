//! The observer of a node: its features, and whether its instances are as the rows say.

use super::differences::Differences;
use super::images::ImageSurvey;
use super::kept_looks::KeptLooks;
use super::spec;
use super::store::{ListDigest, Listed, NodeStore, StoreFailure, StoreVerdict};
use super::tasks::Tasks;
use super::writer::ObservationWriter;
use crate::App;
use crate::nodes::NodeState;
use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use wharf_domain::driver::{DriverTarget, Features, Phase, PluginError, StoreMark, Tag};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::placement::Supports;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
use wharf_plugin::NodeDriver;

/// Observes one node.
pub struct Observer {
    app: Arc<App>,
    tasks: Arc<Tasks>,
    node: NodeId,
    driver: NodeDriver,
    /// There was no gap since the last look, so an instance that is found dead died by itself. After a
    /// gap (a start of Wharf, a node out of reach, a boot of the engine, a loss of contact) it is
    /// started again.
    continuous: bool,
    boot_id: Option<String>,
    images: ImageSurvey,
    probed: Option<Instant>,
    /// The count of interruptions when the last look began.
    interruptions: Option<u64>,
    reachable: Option<bool>,
    /// The number of commits and the digest of the list at the last comparison that found no
    /// difference, and the mark of the store.
    agreed: Option<(u64, ListDigest, StoreMark)>,
    /// How often the engine refused a mark. It is not asked again after [`MARK_TRIES`].
    mark_tries: u32,
    /// Objects without a row at the last look.
    orphans: HashSet<Tag>,
    volumes: KeptLooks<OfVolume>,
    snapshots: KeptLooks<OfSnapshot>,
    /// Unknown objects that were logged: they have this installation's label, but it never made them.
    unknown: HashSet<InstanceId>,
}

/// The shortest pause between two looks.
const AT_LEAST: Duration = Duration::from_millis(50);
/// The pause between two looks at a node that is out of reach or has an outage, while an instance waits for it.
const WHILE_AWAY: Duration = Duration::from_millis(500);
/// Orphans removed at one look; the others wait for the next look.
const MAX_REMOVALS: usize = 32;
/// How often the engine is asked to mark its store.
const MARK_TRIES: u32 = 3;
/// Unknown objects remembered, so that each is logged once.
const MAX_UNKNOWN: usize = 100;

impl Observer {
    pub fn new(app: Arc<App>, tasks: Arc<Tasks>, node: NodeId, driver: NodeDriver) -> Self {
        Self {
            app,
            tasks,
            node,
            driver,
            continuous: false,
            boot_id: None,
            images: ImageSurvey::default(),
            probed: None,
            interruptions: None,
            reachable: None,
            agreed: None,
            mark_tries: 0,
            orphans: HashSet::new(),
            volumes: KeptLooks::default(),
            snapshots: KeptLooks::default(),
            unknown: HashSet::new(),
        }
    }

    /// Looks at once, and then regularly. `share` spreads the looks at all nodes over the interval, so
    /// that they do not delay requests together.
    pub async fn run(mut self, share: f64) {
        let every = Duration::from_millis(self.app.config().limits.observe_every_ms.max(100));
        let mut tick = interval_at(Instant::now() + every.mul_f64(share), every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.look_and_tell().await;
            self.app.metrics.observed(&self.node);
            tokio::select! {
                biased;
                _ = tick.tick() => {}
                () = self.app.nodes.should_look(&self.node) => {
                    // Workers that wait for the node ask for a look after each one that failed.
                    let is_away = self.app.nodes.is_away(&self.node);
                    let pause = if is_away { WHILE_AWAY.min(every) } else { AT_LEAST };
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn look_and_tell(&mut self) {
        self.app.nodes.begin_look(&self.node);
        let looked = self.look().await;
        let reachable = looked.is_ok();
        self.continuous = matches!(looked, Ok(true));
        if let Err(error) = &looked
            // Calls of others fill the queue. That says nothing of the engine.
            && *error != PluginError::Busy
        {
            let state = NodeState::Unreachable(error.to_string());
            let now = self.app.clock.now();
            self.app.nodes.found(&self.node, state, 0, now);
        }
        if self.reachable != Some(reachable) {
            match &looked {
                Ok(_) => tracing::info!(node = %self.node, "node is reachable"),
                Err(error) => tracing::warn!(node = %self.node, %error, "node is out of reach"),
            }
            self.reachable = Some(reachable);
        }
    }

    /// Looks once. True if every difference was dealt with: one that is left over after a gap must not
    /// count as a death at the next look.
    async fn look(&mut self) -> Result<bool, PluginError> {
        let interruptions = self.driver.interruptions();
        if self.is_probe_due(interruptions) {
            self.probe().await?;
        }
        if self.reachable != Some(true) {
            self.images.look_again();
        }
        // Read before the list: if the store changes meanwhile, the answers may be of the earlier one.
        let verified_at = self.driver.interruptions();
        let listed = Listed::of(&self.driver).await?;
        // Read after the list: another store in between is detected.
        let mark = self.driver.identify().await?;
        let known = self.interruptions.replace(interruptions);
        if known.is_some_and(|n| n != self.driver.interruptions()) {
            tracing::info!(node = %self.node, "contact with the engine was lost since the last look");
            self.continuous = false;
        }
        match self.compare(mark, listed, verified_at).await {
            Ok(dealt_with) => Ok(dealt_with),
            Err(StoreFailure::Node(error)) => Err(error),
            Err(StoreFailure::Rows(error)) => {
                tracing::error!(node = %self.node, error = %error.chain(), "cannot compare the node with the database");
                Ok(false)
            }
        }
    }

    /// A probe costs some engines far more than a list, and its result changes only with the engine,
    /// whose end breaks contact. A driver that reports a boot id is probed at every look.
    fn is_probe_due(&self, interruptions: u64) -> bool {
        let every = Duration::from_millis(self.app.config().limits.probe_every_ms);
        self.reachable != Some(true)
            || self.interruptions != Some(interruptions)
            || self.boot_id.as_ref().is_some_and(|id| !id.is_empty())
            || self.probed.is_none_or(|at| at.elapsed() >= every)
    }

    async fn probe(&mut self) -> Result<(), PluginError> {
        let health = self.driver.probe().await?;
        if self
            .boot_id
            .as_ref()
            .is_some_and(|id| *id != health.boot_id)
        {
            self.continuous = false;
        }
        self.boot_id = Some(health.boot_id);
        self.probed = Some(Instant::now());
        self.note_features(health.features);
        Ok(())
    }

    fn note_features(&self, features: Features) {
        if !self.app.nodes.set_features(&self.node, features) {
            return;
        }
        let supports = Supports {
            containers: features.containers,
            vms: features.vms,
            gpus: features.gpus,
            volumes: features.volumes,
        };
        self.app.inventory.set_supports(&self.node, supports);
    }

    async fn compare(
        &mut self,
        mark: StoreMark,
        listed: Listed,
        verified_at: u64,
    ) -> Result<bool, StoreFailure> {
        // Read before the rows are: a commit in between makes the next look compare again.
        let seen = (self.app.db.commits(), listed.digest(), mark.clone());
        if self.agreed.as_ref() == Some(&seen) {
            self.survey(verified_at).await?;
            self.tell(NodeState::Reachable, verified_at);
            return Ok(true);
        }
        self.agreed = None;
        let store = NodeStore {
            app: &self.app,
            node: &self.node,
            driver: &self.driver,
        };
        let judged = store.judge(mark, listed).await?;
        if let StoreVerdict::Outage(outage) = judged.verdict {
            self.images.look_again();
            if judged.row.accepted {
                store.accept(&judged).await?;
                judged
                    .found
                    .lost
                    .keys()
                    .for_each(|id| self.app.waiters.notify(*id));
                self.app.nodes.look_soon(&self.node);
            } else {
                self.tell(NodeState::Outage(outage), verified_at);
            }
            return Ok(false);
        }
        let adopted = store.adopt(&judged, self.mark_tries < MARK_TRIES).await;
        self.note_mark(adopted)?;
        self.survey(verified_at).await?;
        self.tell(NodeState::Reachable, verified_at);
        if judged.found.is_empty() {
            self.agreed = Some(seen);
        }
        let Differences {
            suspects,
            is_unsettled,
            orphans,
            unknown,
            volumes,
            snapshots,
            ..
        } = judged.found;
        // The worker may settle a row without bringing back what ended in the gap.
        let mut dealt_with = self.continuous || !is_unsettled;
        for row in suspects {
            dealt_with &= self.examine(row, verified_at).await?;
        }
        // A list may be older than the end of a deletion. An orphan in two lists exists.
        let before = mem::replace(&mut self.orphans, orphans.iter().copied().collect());
        let twice = orphans.iter().filter(|orphan| before.contains(orphan));
        for orphan in twice.take(MAX_REMOVALS) {
            self.remove(orphan).await;
        }
        for id in unknown {
            self.leave_alone(id);
        }
        let looks = mem::take(&mut self.volumes);
        self.volumes = looks
            .deal_with(&self.app, &self.node, &self.driver, volumes)
            .await?;
        let looks = mem::take(&mut self.snapshots);
        self.snapshots = looks
            .deal_with(&self.app, &self.node, &self.driver, snapshots)
            .await?;
        Ok(dealt_with)
    }

    /// Notes whether the store has its mark. Until it has, or the engine has refused it several times, the node
    /// is not known to show its own store.
    fn note_mark(&mut self, adopted: Result<bool, StoreFailure>) -> Result<(), StoreFailure> {
        let error = match adopted {
            Ok(true) => return Ok(()),
            Ok(false) => {
                self.mark_tries = MARK_TRIES;
                return Ok(());
            }
            Err(StoreFailure::Node(error)) => error,
            Err(failure) => return Err(failure),
        };
        self.mark_tries += match error {
            PluginError::Unsupported(_) => MARK_TRIES,
            PluginError::Unreachable(_) => 0,
            _ => 1,
        };
        if self.mark_tries < MARK_TRIES {
            return Err(error.into());
        }
        tracing::warn!(node = %self.node, %error, "cannot mark the engine's store");
        Ok(())
    }

    /// Surveys the images of the node's own store.
    async fn survey(&mut self, verified_at: u64) -> Result<(), StoreFailure> {
        let surveyed = self
            .images
            .look(&self.app, &self.node, &self.driver, verified_at);
        surveyed.await.map_err(StoreFailure::Node)
    }

    /// Notes the node's state. The operator is told once of an outage and of its end.
    fn tell(&self, state: NodeState, verified_at: u64) {
        let (nodes, now) = (&self.app.nodes, self.app.clock.now());
        let before = nodes.found(&self.node, state.clone(), verified_at, now);
        match (&before, &state) {
            (NodeState::Outage(before), NodeState::Outage(now)) if before == now => {}
            (_, NodeState::Outage(outage)) => tracing::warn!(
                node = %self.node, %outage,
                "node has an outage: its instances keep their state and resources, and nothing is \
                 changed there. Bring back the engine's own data, or run `wharf node accept {}` if this \
                 engine is the new one; the absent instances then count as ended",
                self.node
            ),
            (NodeState::Outage(_), _) => {
                tracing::info!(node = %self.node, "the node's outage has ended");
            }
            _ => {}
        }
    }

    /// Inspects one instance, as the list may be older than the row. False if that is not possible
    /// now.
    async fn examine(&self, row: Instance, verified_at: u64) -> Result<bool, Error> {
        if self.tasks.is_running(row.id) {
            return Ok(false);
        }
        let Ok(report) = self.driver.inspect(spec::tag(&row), row.generation).await else {
            return Ok(false);
        };
        let writer = ObservationWriter {
            db: self.app.db.clone(),
            id: row.id,
            generation: row.generation,
        };
        let gone = match report.phase {
            Phase::Stopped(why) => why.unwrap_or_else(|| "stopped".to_owned()),
            Phase::Failed(why) => why,
            Phase::Elsewhere(place) => {
                tracing::warn!(instance = %row.id, node = %self.node, place, "another node of the cluster has the instance");
                return Ok(true);
            }
            Phase::Absent => "the engine no longer has the instance".to_owned(),
            Phase::Booting | Phase::Ready if row.intent == Intent::Stop => {
                tracing::warn!(instance = %row.id, "stopped instance is running, stopping it");
                writer.unsettled(None).await?;
                self.tasks.wake(&self.app, row.id, None);
                return Ok(true);
            }
            _ => return Ok(true),
        };
        if row.intent != Intent::Run {
            return Ok(true);
        }
        // The inspection may have reached another store than the list did.
        if self.driver.interruptions() != verified_at {
            return Ok(false);
        }
        if self.continuous {
            tracing::info!(instance = %row.id, why = gone, "instance ended by itself");
            writer.died(gone).await?;
        } else {
            tracing::info!(instance = %row.id, why = gone, "instance is not running after a gap, starting it");
            let deadline = self.app.deadline(self.app.clock.now());
            writer.unsettled(Some(deadline)).await?;
            self.tasks.wake(&self.app, row.id, None);
        }
        Ok(true)
    }

    /// Logs an unknown object and leaves it alone. It is newer than the database, which was restored, or
    /// its label is false; it may hold a user's data.
    fn leave_alone(&mut self, id: InstanceId) {
        if self.unknown.len() < MAX_UNKNOWN && self.unknown.insert(id) {
            tracing::warn!(instance = %id, node = %self.node, "unknown object with this installation's label, leaving it alone");
        }
    }

    /// Removes an orphan: the late result of a call whose response was lost.
    async fn remove(&self, tag: &Tag) {
        tracing::warn!(instance = %tag.instance, node = %self.node, "object without a row, removing it");
        let target = DriverTarget::orphan(*tag);
        if let Err(error) = self.driver.delete(&target).await {
            tracing::warn!(instance = %tag.instance, %error, "cannot remove the object");
        }
    }
}
