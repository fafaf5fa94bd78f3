//! The keeper of a node's volumes: it makes the node follow their rows, one after the other. A notification
//! or a tick only wakes it.

use super::store::{NodeStore, StoreFailure};
use crate::App;
use crate::flavor_images::{holders, images};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Changes, Rows as _, VOLUMES, VOLUMES_ON, View};
use wharf_domain::driver::{PluginError, VolumeReport, VolumeState};
use wharf_domain::error::Error;
use wharf_domain::event::VolumeEvent;
use wharf_domain::ids::{NodeId, VolumeId};
use wharf_domain::volume::{Volume, VolumeFailure};
use wharf_plugin::NodeDriver;

/// How often the rows are read for work whose notification was lost.
const TICK: Duration = Duration::from_secs(5);
/// The pause before a step is tried again, first and longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// An engine may still carry out a creation whose response was lost. Only a second absence, this much
/// later, proves that it did not.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Keeps the volumes of one node.
pub struct VolumeKeeper {
    app: Arc<App>,
    node: NodeId,
    driver: NodeDriver,
    tried: BTreeMap<VolumeId, Tried>,
}

/// The earlier tries for a volume.
struct Tried {
    /// The time until which a volume must be made. It stands still while the node is out of reach.
    deadline: Instant,
    next: Instant,
    pause: Duration,
    first_absent: Option<Instant>,
    /// The last failure in the log.
    logged: Option<String>,
    /// The driver is asked once more after an answer that another store may have given.
    doubted: bool,
}

/// The result of one step.
enum Stepped {
    /// The row has changed.
    Done,
    /// The next step is due after this time.
    After(Duration),
    /// The step failed.
    Failed(String),
    /// The node was out of reach.
    Away(String),
}

impl From<Result<(), Error>> for Stepped {
    fn from(written: Result<(), Error>) -> Self {
        match written {
            Ok(()) => Self::Done,
            Err(error) => Self::Failed(error.chain()),
        }
    }
}

impl From<StoreFailure> for Stepped {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Node(error) => Self::Away(error.to_string()),
            StoreFailure::Rows(error) => Self::Failed(error.chain()),
        }
    }
}

impl VolumeKeeper {
    pub fn new(app: Arc<App>, node: NodeId, driver: NodeDriver) -> Self {
        Self {
            app,
            node,
            driver,
            tried: BTreeMap::new(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        loop {
            let next = match self.work().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::error!(node = %self.node, error = %error.chain(), "cannot keep the volumes of a node");
                    None
                }
            };
            let next = next.map_or(TICK, |next| next.saturating_duration_since(Instant::now()));
            let notified = self.app.nodes.volume_work(&self.node);
            drop(tokio::time::timeout(next.min(TICK), notified).await);
        }
    }

    /// Takes a step for each volume that needs one. Returns the time of the next step.
    async fn work(&mut self) -> Result<Option<Instant>, Error> {
        let pending = self.app.db.read(|rows| {
            let mut pending = Vec::new();
            for id in rows.keys_under(&VOLUMES_ON, &self.node.0)? {
                // A damaged row does not keep the others.
                let row = rows.get(&VOLUMES, id?).ok().flatten();
                pending.extend(row.filter(Volume::is_pending));
            }
            Ok(pending)
        })?;
        self.tried
            .retain(|id, _| pending.iter().any(|volume| volume.id == *id));
        if pending.is_empty() {
            return Ok(None);
        }
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        for volume in &pending {
            let now = Instant::now();
            let tried = self.tried.entry(volume.id).or_insert_with(|| Tried {
                deadline: now + full,
                next: now,
                pause: PAUSE.0,
                first_absent: None,
                logged: None,
                doubted: false,
            });
            if now < tried.next {
                continue;
            }
            let verified = self.app.nodes.verified(&self.driver);
            let verified = tokio::time::timeout(PAUSE.1, verified).await;
            self.stand_still(now.elapsed());
            let Ok(interruptions) = verified else {
                return Ok(Some(Instant::now()));
            };
            let begun = Instant::now();
            let stepped = match self.step(volume, interruptions).await {
                Ok(stepped) | Err(stepped) => stepped,
            };
            if let Stepped::Away(_) = &stepped {
                self.stand_still(begun.elapsed());
            }
            self.note(volume.id, stepped);
        }
        Ok(self.tried.values().map(|tried| tried.next).min())
    }

    /// Moves all deadlines.
    fn stand_still(&mut self, time: Duration) {
        for tried in self.tried.values_mut() {
            tried.deadline += time;
        }
    }

    fn note(&mut self, id: VolumeId, stepped: Stepped) {
        let Some(tried) = self.tried.get_mut(&id) else {
            return;
        };
        let pause = match stepped {
            Stepped::Done => {
                tried.pause = PAUSE.0;
                Duration::ZERO
            }
            Stepped::After(pause) => {
                tried.pause = PAUSE.0;
                pause.min(PAUSE.1)
            }
            Stepped::Failed(why) | Stepped::Away(why) => {
                let pause = tried.pause;
                // A volume that an instance of the engine has may stay for weeks.
                if tried.logged.as_ref() != Some(&why) {
                    tracing::warn!(volume = %id, node = %self.node, %why, "a step of a volume failed, retrying");
                    tried.logged = Some(why);
                }
                tried.pause = (pause * 2).min(PAUSE.1);
                pause
            }
        };
        tried.next = Instant::now() + pause;
    }

    /// Takes a step. The node had its own store at this count of interruptions.
    async fn step(&mut self, volume: &Volume, interruptions: u64) -> Result<Stepped, Stepped> {
        if volume.deleted {
            self.unmake(volume, interruptions).await
        } else {
            self.make(volume, interruptions).await
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
    async fn believe(&mut self, id: VolumeId, interruptions: u64) -> Result<(), Stepped> {
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

    async fn make(&mut self, volume: &Volume, interruptions: u64) -> Result<Stepped, Stepped> {
        let mut late = false;
        if let Some(tried) = self.tried.get_mut(&volume.id) {
            late = Instant::now() >= tried.deadline;
        }
        Ok(match make_volume(&self.app, &self.driver, volume).await {
            Ok(VolumeReport {
                state: VolumeState::Ready | VolumeState::InUse,
                ..
            }) => {
                self.believe(volume.id, interruptions).await?;
                self.ready(volume.id).await.into()
            }
            Ok(VolumeReport {
                state: VolumeState::Failed(why),
                ..
            }) => self.failed(volume.id, interruptions, why).await?,
            Ok(_) if late => {
                let why = "not made in time".to_owned();
                self.failed(volume.id, interruptions, why).await?
            }
            Ok(report) => Stepped::After(report.again.unwrap_or(PAUSE.0)),
            Err(PluginError::RetryLater(pause)) if !late => Stepped::After(pause),
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => {
                Stepped::Away(error.to_string())
            }
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::Unsupported(_)),
            ) => {
                self.failed(volume.id, interruptions, error.to_string())
                    .await?
            }
            Err(error) if late => {
                self.failed(volume.id, interruptions, error.to_string())
                    .await?
            }
            Err(error) => Stepped::Failed(error.to_string()),
        })
    }

    async fn unmake(&mut self, volume: &Volume, interruptions: u64) -> Result<Stepped, Stepped> {
        Ok(match self.driver.unmake_volume(volume.id).await {
            Ok(VolumeReport {
                state: VolumeState::Absent,
                ..
            })
            | Err(PluginError::NotFound) => {
                self.believe(volume.id, interruptions).await?;
                if let Some(wait) = self.until_certain(volume) {
                    return Ok(Stepped::After(wait));
                }
                self.purged(volume.id).await.into()
            }
            Ok(VolumeReport {
                state: VolumeState::InUse,
                ..
            }) => Stepped::Failed("an instance of the engine has it".to_owned()),
            Ok(report) => Stepped::After(report.again.unwrap_or(PAUSE.0)),
            Err(PluginError::RetryLater(pause)) => Stepped::After(pause),
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => {
                Stepped::Away(error.to_string())
            }
            Err(error) => Stepped::Failed(error.to_string()),
        })
    }

    /// The time until an absence proves that the volume will not appear any more.
    fn until_certain(&mut self, volume: &Volume) -> Option<Duration> {
        let tried = self.tried.get_mut(&volume.id)?;
        if volume.made {
            return None;
        }
        let first = *tried.first_absent.get_or_insert_with(Instant::now);
        let left = SECOND_LOOK.saturating_sub(first.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// The node has the volume.
    async fn ready(&self, id: VolumeId) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(&VOLUMES, id)? {
                Some(mut row) if !row.deleted && !row.made && row.failure.is_none() => {
                    row.made = true;
                    Changes::none().record_volume(row, view.now, VolumeEvent::Ready)
                }
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        self.app.db.write_essential(decide).await
    }

    /// The volume cannot be made.
    async fn failed(
        &mut self,
        id: VolumeId,
        interruptions: u64,
        why: String,
    ) -> Result<Stepped, Stepped> {
        self.believe(id, interruptions).await?;
        self.confirm().await?;
        tracing::warn!(volume = %id, node = %self.node, why, "a volume cannot be made");
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(&VOLUMES, id)? {
                Some(row) if !row.deleted && !row.made => {
                    fail(row, view, VolumeFailure::NotMade, &why)
                }
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        Ok(self.app.db.write_essential(decide).await.into())
    }

    /// The node does not have the deleted volume any more, which frees its claim.
    async fn purged(&self, id: VolumeId) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let changes = match view.rows.get(&VOLUMES, id)? {
                Some(row) if row.deleted => Changes::none().drop_volume(&row),
                _ => Changes::none(),
            };
            Ok(((), changes))
        };
        self.app.db.write_essential(decide).await
    }
}

/// Asks a node to make a volume, or to complete it.
pub async fn make_volume(
    app: &App,
    driver: &NodeDriver,
    volume: &Volume,
) -> Result<VolumeReport, PluginError> {
    // An engine may make what holds a volume from the image of a flavor.
    let mut known = app.flavor_images.load_full();
    if known.is_empty() {
        known = Arc::new(images(&app.plugins, &app.config().login_user).await);
    }
    let references = holders(&known, driver.engine_kind());
    driver
        .make_volume(volume.id, volume.size_gib, &references)
        .await
}

/// Puts a volume into error, with the reason for the operator.
pub fn fail(row: Volume, view: &View<'_>, failure: VolumeFailure, why: &str) -> Changes {
    let failed = Volume {
        failure: Some(failure),
        ..row
    };
    let what = VolumeEvent::Failed(failure, why.to_owned());
    Changes::none().record_volume(failed, view.now, what)
}
