//! The kinds of kept data, volumes and snapshots, as the driver of a node makes, lists and removes them.

use super::fetch_volume::Incoming;
use super::spec;
use crate::App;
use crate::flavor_images::{holders, images};
use crate::snapshots::{SOURCED, is_in_use, is_needed, retire_for, tag};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Changes, KeptTable, Read as _, ReadRows, Rows as _, View};
use wharf_domain::driver::{
    CompleteSnapshot, DiskReport, DiskState, ObservedSnapshot, ObservedVolume, PluginError, Source,
    Tag,
};
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, SnapshotId};
use wharf_domain::instance::Progress;
use wharf_domain::kept::Kept;
use wharf_domain::snapshot::{OfSnapshot, Snapshot};
use wharf_domain::volume::{OfVolume, Volume};
use wharf_plugin::NodeDriver;

/// Whether the node may be asked for a step now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// Now, unless the engine has said that an instance needs it.
    UnlessInUse,
    /// After another row has changed. A copy under way goes on.
    Later,
}

/// The making of one, as far as this process knows.
#[derive(Debug, Clone, Copy)]
pub struct Making {
    since: Instant,
    /// An earlier process may have begun it.
    was_begun: bool,
    /// The seconds that it takes in all; none if users are told of none.
    expected_s: Option<u64>,
}

impl Making {
    /// Notes the beginning.
    pub fn begin<K: OnNode>(app: &App, row: &Kept<K>, was_begun: bool) -> Self {
        Self {
            since: Instant::now(),
            was_begun,
            expected_s: K::expected_s(app, row),
        }
    }

    /// The progress in words of the driver, or in seconds if it has none.
    pub fn words(self, progress: &str) -> String {
        match self.expected_s {
            Some(expected) if progress.is_empty() && self.was_begun => {
                format!("about {expected} s in all")
            }
            Some(expected) if progress.is_empty() => {
                format!("{} s of about {expected} s", self.since.elapsed().as_secs())
            }
            _ => progress.to_owned(),
        }
    }
}

/// A kind of kept data on nodes.
pub trait OnNode: KeptTable {
    /// The part of its name on the engine beside the id.
    type Whose: Copy + Send + Sync + 'static;
    /// The facts of a complete one.
    type Facts: PartialEq + Send + Sync + 'static;
    /// State beside the row while it is made.
    type Held: Default + Send + Sync + 'static;
    /// An entry of a node's list.
    type Listed: Hash + Send + Sync + 'static;
    /// Whether it is a copy of something that changes. It takes time and the disk, so that one is made at a time.
    /// One that is not complete is of no use, and goes before it counts as failed.
    const IS_COPY: bool;

    fn whose(row: &Kept<Self>) -> Self::Whose;

    /// Asks the node to make it, or to complete it.
    fn make(
        app: &App,
        driver: &NodeDriver,
        row: &Kept<Self>,
        held: &mut Self::Held,
    ) -> impl Future<Output = Result<DiskReport<Self::Facts>, PluginError>> + Send;

    /// Asks the node to remove it.
    fn unmake(
        driver: &NodeDriver,
        id: Self::Id,
        whose: Self::Whose,
    ) -> impl Future<Output = Result<DiskReport<Self::Facts>, PluginError>> + Send;

    /// Asks the node for all of them.
    fn list(
        driver: &NodeDriver,
    ) -> impl Future<Output = Result<Vec<Self::Listed>, PluginError>> + Send;

    /// The parts of an entry.
    fn seen(listed: &Self::Listed) -> (Self::Id, Self::Whose, &DiskState<Self::Facts>);

    /// Whether a pending row may take a step.
    fn turn(rows: &ReadRows, row: &Kept<Self>) -> Result<Turn, Error>;

    /// Notes in a row that the node has it. Returns the changes that come with that.
    fn complete(
        row: &mut Kept<Self>,
        facts: &Self::Facts,
        view: &View<'_>,
    ) -> Result<Changes, Error>;

    /// The longest time for a copy that makes progress.
    fn at_most(row: &Kept<Self>) -> Duration;

    /// The seconds that the making of one takes, as its user was told before; none if it was not told.
    fn expected_s(app: &App, row: &Kept<Self>) -> Option<u64>;

    /// The progress of those under way, for users; none if nothing waits for them for long.
    fn under_way(app: &App) -> Option<&Mutex<BTreeMap<Self::Id, String>>>;

    /// Completes when the rows should be read.
    fn notified(app: &App, node: &NodeId) -> impl Future<Output = ()> + Send;
}

impl OnNode for OfVolume {
    type Whose = ();
    type Facts = ();
    type Held = Incoming;
    type Listed = ObservedVolume;
    const IS_COPY: bool = false;

    fn whose(_: &Volume) {}

    async fn make(
        app: &App,
        driver: &NodeDriver,
        row: &Volume,
        held: &mut Incoming,
    ) -> Result<DiskReport<()>, PluginError> {
        // An engine may make what holds a volume from the image of a flavor.
        let mut known = app.flavor_images.load_full();
        if known.is_empty() {
            known = Arc::new(images(&app.plugins, &app.config().login_user).await);
        }
        let references = holders(&known, driver.engine_kind());
        let mut report = held.make(app, driver, row, &references).await?;
        if report.state == DiskState::InUse {
            // An instance has only a complete one.
            report.state = DiskState::Ready(());
        }
        Ok(report)
    }

    async fn unmake(
        driver: &NodeDriver,
        id: Self::Id,
        (): (),
    ) -> Result<DiskReport<()>, PluginError> {
        driver.unmake_volume(id).await
    }

    async fn list(driver: &NodeDriver) -> Result<Vec<ObservedVolume>, PluginError> {
        driver.list_volumes().await
    }

    fn seen(listed: &ObservedVolume) -> (Self::Id, (), &DiskState<()>) {
        (listed.volume, (), &listed.state)
    }

    fn turn(_: &ReadRows, _: &Volume) -> Result<Turn, Error> {
        Ok(Turn::Now)
    }

    fn complete(row: &mut Volume, (): &(), _: &View<'_>) -> Result<Changes, Error> {
        row.made = true;
        Ok(Changes::none())
    }

    fn at_most(row: &Volume) -> Duration {
        match row.of.content {
            Some(_) => LONGEST_FETCH,
            None => Duration::ZERO,
        }
    }

    fn expected_s(_: &App, _: &Volume) -> Option<u64> {
        None
    }

    fn under_way(app: &App) -> Option<&Mutex<BTreeMap<Self::Id, String>>> {
        Some(&app.volume_progress)
    }

    async fn notified(app: &App, node: &NodeId) {
        app.nodes.volume_work(node).await;
    }
}

/// The longest time for the content of a volume that makes progress. Buckets may be slow, and be away meanwhile.
const LONGEST_FETCH: Duration = Duration::from_hours(24);
/// The longest time for a GiB of an instance's disk. Engines need a tenth of it.
const COPY_OF_A_GIB: Duration = Duration::from_mins(1);

impl OnNode for OfSnapshot {
    type Whose = Tag;
    type Facts = CompleteSnapshot;
    type Held = ();
    type Listed = ObservedSnapshot;
    const IS_COPY: bool = true;

    fn whose(row: &Snapshot) -> Tag {
        tag(row)
    }

    async fn make(
        app: &App,
        driver: &NodeDriver,
        row: &Snapshot,
        (): &mut (),
    ) -> Result<DiskReport<CompleteSnapshot>, PluginError> {
        let fault = |error: Error| PluginError::Fault(error.chain().to_string());
        let instance = app.db.read(|rows| rows.instance(row.of.instance));
        let instance = instance.map_err(fault)?;
        let same = instance.filter(|now| now.incarnation == row.of.incarnation);
        let gone = || PluginError::Conflict("the instance is gone".to_owned());
        let target = spec::target(app, &same.ok_or_else(gone)?).map_err(fault)?;
        driver.take_snapshot(&target, row.id).await
    }

    async fn unmake(
        driver: &NodeDriver,
        snapshot: SnapshotId,
        instance: Tag,
    ) -> Result<DiskReport<CompleteSnapshot>, PluginError> {
        driver.drop_snapshot(Source { snapshot, instance }).await
    }

    async fn list(driver: &NodeDriver) -> Result<Vec<ObservedSnapshot>, PluginError> {
        driver.list_snapshots().await
    }

    fn seen(listed: &ObservedSnapshot) -> (SnapshotId, Tag, &DiskState<CompleteSnapshot>) {
        (listed.snapshot, listed.instance, &listed.state)
    }

    fn turn(rows: &ReadRows, row: &Snapshot) -> Result<Turn, Error> {
        let (id, waits) = (row.id, is_in_use(rows, row)?);
        if !row.deleted {
            // A step of the instance comes first, unless it waits for the snapshot.
            let instance = rows.instance(row.of.instance)?;
            let is_pending = instance.is_some_and(|row| row.progress == Progress::Pending);
            return Ok(if is_pending && !waits {
                Turn::Later
            } else {
                Turn::Now
            });
        }
        Ok(if waits || is_needed(rows, id)? {
            Turn::Later
        } else if rows.keys_under(&SOURCED, &id)?.next().is_some() {
            Turn::UnlessInUse
        } else {
            Turn::Now
        })
    }

    fn complete(
        row: &mut Snapshot,
        facts: &CompleteSnapshot,
        view: &View<'_>,
    ) -> Result<Changes, Error> {
        row.complete(facts.bytes, facts.clonable, view.system);
        retire_for(view, row)
    }

    fn at_most(row: &Snapshot) -> Duration {
        COPY_OF_A_GIB * row.of.disk_size_gib
    }

    fn expected_s(app: &App, row: &Snapshot) -> Option<u64> {
        app.copy_seconds(row)
    }

    fn under_way(app: &App) -> Option<&Mutex<BTreeMap<SnapshotId, String>>> {
        Some(&app.snapshot_progress)
    }

    async fn notified(app: &App, node: &NodeId) {
        app.nodes.snapshot_work(node).await;
    }
}
