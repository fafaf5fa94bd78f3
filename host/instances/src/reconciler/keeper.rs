//! The keeper of the volumes of a node, or of its snapshots: it makes the node follow their rows, one after the
//! other. A notification or a tick only wakes it.

use super::attempt::FIRST_PAUSE;
use super::on_node::{Making, OnNode, Turn};
use super::stepped::Stepped;
use super::store::NodeStore;
use super::tasks::until_certain;
use crate::App;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Changes, Rows as _, View};
use wharf_domain::driver::{DiskReport, DiskState, PluginError};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::kept::{Kept, KeptEvent, KeptFailure};
use wharf_plugin::NodeDriver;

/// How often the rows are read for work whose notification was lost.
const TICK: Duration = Duration::from_secs(5);
/// The pause before a step is tried again, first and longest.
const PAUSE: (Duration, Duration) = (FIRST_PAUSE, Duration::from_secs(5));

/// Keeps one kind of data on one node.
pub struct Keeper<K: OnNode> {
    app: Arc<App>,
    node: NodeId,
    driver: NodeDriver,
    tried: BTreeMap<K::Id, Tried<K::Held>>,
    /// The last requests to make one that got no answer. The engine may carry each out after a later one that was
    /// answered.
    unanswered: BTreeMap<K::Id, Instant>,
    /// The start of this process, and the last place of a row then: Wharf's own clock may go back at a start.
    begun: Instant,
    last_seq: u64,
}

/// The earlier tries for one row.
struct Tried<H> {
    /// The time until which it must be made, and until which a copy must be complete that makes progress. They
    /// stand still while the node is out of reach.
    deadline: Instant,
    last_deadline: Instant,
    next: Instant,
    pause: Duration,
    /// The node was asked to make it.
    begun: bool,
    making: Option<Making>,
    /// Its user has deleted it.
    deleted: bool,
    /// The reason for which it is given up, once what is left of it is removed.
    given_up: Option<String>,
    /// The driver has said that an instance needs it.
    in_use: bool,
    first_absent: Option<Instant>,
    /// The last failure in the log.
    logged: Option<String>,
    /// The driver is asked once more after an answer that another store may have given.
    doubted: bool,
    held: H,
}

impl<K: OnNode> Keeper<K> {
    pub fn new(app: Arc<App>, node: NodeId, driver: NodeDriver) -> Self {
        let last = app.db.read(|rows| {
            let mut last = 0;
            for id in rows.keys_under(K::ON_NODE, &node.0)? {
                let row = rows.get(K::ROWS, id?).ok().flatten();
                last = last.max(row.map_or(0, |row| row.seq));
            }
            Ok(last)
        });
        Self {
            app,
            node,
            driver,
            tried: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            begun: Instant::now(),
            last_seq: last.unwrap_or(u64::MAX),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        loop {
            let next = match self.work().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::error!(node = %self.node, error = %error.chain(), "cannot keep each {} of a node", K::WORD);
                    None
                }
            };
            let next = next.map_or(TICK, |next| next.saturating_duration_since(Instant::now()));
            let notified = K::notified(&self.app, &self.node);
            drop(tokio::time::timeout(next.min(TICK), notified).await);
        }
    }

    /// The pending rows in the order of their creation, with what each may do.
    fn pending(&self) -> Result<Vec<(Kept<K>, Turn)>, Error> {
        self.app.db.read(|rows| {
            let mut pending = Vec::new();
            for id in rows.keys_under(K::ON_NODE, &self.node.0)? {
                // A damaged row does not keep the others.
                let Ok(Some(row)) = rows.get(K::ROWS, id?) else {
                    continue;
                };
                if row.is_pending() {
                    let turn = K::turn(rows, &row).unwrap_or(Turn::Later);
                    pending.push((row, turn));
                }
            }
            pending.sort_by_key(|(row, _)| row.seq);
            Ok(pending)
        })
    }

    /// Takes a step for each row that needs one. Returns the time of the next step.
    async fn work(&mut self) -> Result<Option<Instant>, Error> {
        let pending = self.pending()?;
        let under_way = K::under_way(&self.app);
        self.tried.retain(|id, _| {
            let stays = pending.iter().any(|(row, _)| row.id == *id);
            if let Some(under_way) = under_way.filter(|_| !stays) {
                under_way.lock().remove(id);
            }
            stays
        });
        self.unanswered
            .retain(|_, at| until_certain(Some(*at)).is_some());
        if pending.is_empty() {
            return Ok(None);
        }
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        let mut on = Vec::new();
        for (row, turn) in &pending {
            // The end of its copy holds up no other.
            if let Some(tried) = self.tried.get_mut(&row.id).filter(|_| row.deleted) {
                tried.begun = false;
            }
            if !self.is_on(row, *turn) {
                continue;
            }
            on.push(row.id);
            let now = Instant::now();
            let tried = self.tried.entry(row.id).or_insert_with(|| Tried {
                deadline: now + full,
                last_deadline: now + full + K::at_most(row),
                next: now,
                pause: PAUSE.0,
                begun: false,
                making: None,
                deleted: row.deleted,
                given_up: None,
                in_use: false,
                first_absent: None,
                logged: None,
                doubted: false,
                held: K::Held::default(),
            });
            // A deletion waits for no later look at what it ends.
            let is_new = row.deleted && !mem::replace(&mut tried.deleted, row.deleted);
            if now < tried.next && !is_new {
                continue;
            }
            let verified = self.app.nodes.verified(&self.driver);
            let verified = tokio::time::timeout(PAUSE.1, verified).await;
            self.stand_still(now.elapsed());
            let Ok(interruptions) = verified else {
                return Ok(Some(Instant::now()));
            };
            let begun = Instant::now();
            let stepped = match self.step(row, interruptions).await {
                Ok(stepped) | Err(stepped) => stepped,
            };
            if let Stepped::Away(_) = &stepped {
                self.stand_still(begun.elapsed());
            }
            self.note(row.id, stepped);
        }
        // The others wait for something else, whatever the times of their steps.
        let tried = on.iter().filter_map(|id| self.tried.get(id));
        Ok(tried.map(|tried| tried.next).min())
    }

    /// Whether a row may take a step now. A copy under way goes on, and another one waits for its end.
    fn is_on(&self, row: &Kept<K>, turn: Turn) -> bool {
        let tried = self.tried.get(&row.id);
        if !row.deleted && tried.is_some_and(|tried| tried.begun) {
            return true;
        }
        let mut others = self.tried.iter().filter(|(id, _)| **id != row.id);
        let waits = K::IS_COPY && !row.deleted && others.any(|(_, tried)| tried.begun);
        match turn {
            Turn::Now => !waits,
            Turn::UnlessInUse => !waits && tried.is_none_or(|tried| !tried.in_use),
            Turn::Later => false,
        }
    }

    /// Moves all deadlines.
    fn stand_still(&mut self, time: Duration) {
        for tried in self.tried.values_mut() {
            tried.deadline += time;
            tried.last_deadline += time;
        }
    }

    fn note(&mut self, id: K::Id, stepped: Stepped) {
        let Some(tried) = self.tried.get_mut(&id) else {
            return;
        };
        let pause = match stepped {
            Stepped::Done => {
                if let Some(under_way) = K::under_way(&self.app) {
                    under_way.lock().remove(&id);
                }
                tried.begun = false;
                tried.pause = PAUSE.0;
                Duration::ZERO
            }
            Stepped::After(pause) => {
                tried.pause = PAUSE.0;
                pause.min(PAUSE.1)
            }
            Stepped::Failed(why) | Stepped::Away(why) => {
                let pause = tried.pause;
                // A snapshot in use by an instance may stay for weeks.
                if tried.logged.as_ref() != Some(&why) {
                    tracing::warn!(%id, node = %self.node, %why, "a step of a {} failed, retrying", K::WORD);
                    tried.logged = Some(why);
                }
                tried.pause = (pause * 2).min(PAUSE.1);
                pause
            }
        };
        tried.next = Instant::now() + pause;
    }

    /// Takes a step. The node had its own store at this count of interruptions.
    async fn step(&mut self, row: &Kept<K>, interruptions: u64) -> Result<Stepped, Stepped> {
        if row.deleted {
            self.unmake(row, interruptions).await
        } else {
            self.make(row, interruptions).await
        }
    }

    /// Makes sure that the node shows its own store.
    async fn confirm(&self) -> Result<(), Stepped> {
        let store = NodeStore {
            app: &self.app,
            node: &self.node,
            driver: &self.driver,
        };
        Ok(store.confirm().await?)
    }

    /// Makes sure that an answer was one of the node's own store. If contact was lost since the node was verified,
    /// it may be one of another store.
    async fn believe(&mut self, id: K::Id, interruptions: u64) -> Result<(), Stepped> {
        if self.driver.interruptions() == interruptions {
            return Ok(());
        }
        self.confirm().await?;
        // An engine may end each connection after its answer, so that the second answer counts.
        let tried = self.tried.get_mut(&id);
        if tried.is_some_and(|tried| !mem::replace(&mut tried.doubted, true)) {
            return Err(Stepped::After(PAUSE.0));
        }
        Ok(())
    }

    async fn make(&mut self, row: &Kept<K>, interruptions: u64) -> Result<Stepped, Stepped> {
        let (mut late, mut given_up, mut held) = (false, None, K::Held::default());
        if let Some(tried) = self.tried.get_mut(&row.id) {
            tried.begun = true;
            if tried.making.is_none() {
                let was_begun = row.seq <= self.last_seq;
                tried.making = Some(Making::begin(&self.app, row, was_begun));
            }
            late = Instant::now() >= tried.deadline;
            given_up = tried.given_up.clone();
            held = mem::take(&mut tried.held);
        }
        if let Some(why) = given_up {
            return self.failed(row, interruptions, why).await;
        }
        if let Some(under_way) = K::under_way(&self.app) {
            under_way.lock().entry(row.id).or_default();
        }
        let made = K::make(&self.app, &self.driver, row, &mut held).await;
        if let Some(tried) = self.tried.get_mut(&row.id) {
            tried.held = held;
        }
        if let Err(PluginError::Unreachable(_) | PluginError::Fault(_)) = &made {
            self.unanswered.insert(row.id, Instant::now());
        }
        let why = match made {
            Ok(DiskReport {
                state: DiskState::Ready(facts),
                ..
            }) => {
                self.believe(row.id, interruptions).await?;
                return Ok(self.ready(row.id, facts).await.into());
            }
            Ok(DiskReport {
                state: DiskState::Failed(why),
                ..
            }) => why,
            Ok(_) if late => "not made in time".to_owned(),
            Ok(report) => {
                self.goes_on(row.id, &report.state);
                return Ok(report.into());
            }
            Err(error @ PluginError::RetryLater(_)) if !late => return Ok(error.into()),
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => {
                return Ok(error.into());
            }
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::Unsupported(_)),
            ) => error.to_string(),
            Err(error) if late => error.to_string(),
            Err(error) => return Ok(error.into()),
        };
        self.failed(row, interruptions, why).await
    }

    /// Notes the progress of a copy, which has its deadline anew.
    fn goes_on(&mut self, id: K::Id, state: &DiskState<K::Facts>) {
        let (Some(under_way), DiskState::Making(progress)) = (K::under_way(&self.app), state)
        else {
            return;
        };
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        if let Some(tried) = self.tried.get_mut(&id) {
            tried.deadline = (Instant::now() + full).min(tried.last_deadline);
            let words = tried.making.map(|making| making.words(progress));
            under_way.lock().insert(id, words.unwrap_or_default());
        }
    }

    async fn unmake(&mut self, row: &Kept<K>, interruptions: u64) -> Result<Stepped, Stepped> {
        let unmade = K::unmake(&self.driver, row.id, K::whose(row)).await;
        if let Some(tried) = self.tried.get_mut(&row.id) {
            tried.held = K::Held::default();
            tried.in_use = matches!(&unmade, Ok(report) if report.state == DiskState::InUse);
        }
        match unmade {
            Ok(DiskReport {
                state: DiskState::Absent,
                ..
            })
            | Err(PluginError::NotFound) => {
                self.believe(row.id, interruptions).await?;
                if let Some(wait) = self.until_certain(row) {
                    return Ok(Stepped::After(wait));
                }
                Ok(self.purged(row.id).await.into())
            }
            Ok(DiskReport {
                state: DiskState::InUse,
                ..
            }) => {
                let why = "an instance of the engine has it";
                Ok(Stepped::Failed(why.to_owned()))
            }
            Ok(report) => Ok(report.into()),
            Err(error) => Ok(error.into()),
        }
    }

    /// The time until an absence proves that it will not appear any more.
    fn until_certain(&mut self, row: &Kept<K>) -> Option<Duration> {
        if row.made {
            return self.until_answered(row);
        }
        let tried = self.tried.get_mut(&row.id)?;
        until_certain(Some(*tried.first_absent.get_or_insert_with(Instant::now)))
    }

    /// The time until no request to make it is left to carry out. An earlier process may have made one right before
    /// its end.
    fn until_answered(&self, row: &Kept<K>) -> Option<Duration> {
        let earlier = (row.seq <= self.last_seq).then_some(self.begun);
        until_certain(self.unanswered.get(&row.id).copied().or(earlier))
    }

    /// The node has it.
    async fn ready(&self, id: K::Id, facts: K::Facts) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(K::ROWS, id)? {
                Some(mut row) if !row.deleted && !row.made && row.failure.is_none() => {
                    let more = K::complete(&mut row, &facts, view)?;
                    let ready = Changes::none().record_kept(row, view.now, KeptEvent::Ready);
                    ready.with(more)
                }
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        self.app.db.write_essential(decide).await
    }

    /// It cannot be made.
    async fn failed(
        &mut self,
        row: &Kept<K>,
        interruptions: u64,
        why: String,
    ) -> Result<Stepped, Stepped> {
        let id = row.id;
        self.believe(id, interruptions).await?;
        self.confirm().await?;
        let mut is_absent = false;
        if K::IS_COPY {
            if let Some(tried) = self.tried.get_mut(&id) {
                tried.given_up = Some(why.clone());
            }
            is_absent = self.clean(row).await?;
            self.believe(id, interruptions).await?;
            if let Some(wait) = self.until_answered(row) {
                return Err(Stepped::After(wait));
            }
        }
        tracing::warn!(%id, node = %self.node, why, "a {} cannot be made", K::WORD);
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(K::ROWS, id)? {
                Some(mut row) if !row.deleted && !row.made && row.failure.is_none() => {
                    if is_absent {
                        // It claims nothing more.
                        row.size_gib = 0;
                    }
                    let failure = row.of.not_made();
                    fail(row, view, failure, &why)
                }
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        Ok(self.app.db.write_essential(decide).await.into())
    }

    /// Removes what is left of a copy: it takes room, and the instance may stand still for it. Whether nothing is
    /// left.
    async fn clean(&self, row: &Kept<K>) -> Result<bool, Stepped> {
        match K::unmake(&self.driver, row.id, K::whose(row)).await {
            Ok(report) if matches!(report.state, DiskState::Making(_)) => Err(report.into()),
            Ok(report) => Ok(report.state == DiskState::Absent),
            Err(PluginError::NotFound) => Ok(true),
            Err(
                error @ (PluginError::RetryLater(_)
                | PluginError::Unreachable(_)
                | PluginError::Busy),
            ) => Err(error.into()),
            // Its deletion tries again.
            Err(error) => {
                tracing::warn!(id = %row.id, node = %self.node, %error, "cannot remove what is left of a {}", K::WORD);
                Ok(false)
            }
        }
    }

    /// The node does not have it any more, which frees its claim.
    async fn purged(&self, id: K::Id) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(K::ROWS, id)? {
                Some(row) if row.deleted => Changes::none().drop_kept(&row),
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        self.app.db.write_essential(decide).await
    }
}

/// Puts a volume or a snapshot into error, with the reason for the operator.
pub fn fail<K: OnNode>(row: Kept<K>, view: &View<'_>, failure: KeptFailure, why: &str) -> Changes {
    let failed = Kept {
        failure: Some(failure),
        ..row
    };
    let what = KeptEvent::Failed(failure, why.to_owned());
    Changes::none().record_kept(failed, view.now, what)
}
