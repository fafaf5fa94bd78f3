//! The part of a node's observer that deals with differences of volumes, on the node's own store.

use super::volume_differences::VolumeDifferences;
use super::volumes::{fail, make_volume};
use crate::App;
use std::collections::BTreeSet;
use std::mem;
use wharf_db::{Changes, Rows as _, VOLUMES, View};
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::event::VolumeEvent;
use wharf_domain::ids::{NodeId, VolumeId};
use wharf_domain::volume::{Volume, VolumeFailure};
use wharf_plugin::NodeDriver;

/// Orphans removed, and volumes completed, at one look; the others wait for the next look.
const MAX_CALLS: usize = 32;
/// Unknown volumes remembered, so that each is logged once.
const MAX_UNKNOWN: usize = 100;

/// The findings of the last look at a node's volumes.
#[derive(Default)]
pub struct VolumeLooks {
    orphans: BTreeSet<VolumeId>,
    missing: BTreeSet<VolumeId>,
    unknown: BTreeSet<VolumeId>,
}

impl VolumeLooks {
    /// Deals with the differences that two looks in a row have found: a list may be older than the rows.
    pub async fn deal_with(
        mut self,
        app: &App,
        node: &NodeId,
        driver: &NodeDriver,
        found: VolumeDifferences,
    ) -> Result<Self, Error> {
        let before = mem::replace(&mut self.missing, found.missing.iter().copied().collect());
        for id in found.missing.iter().filter(|id| before.contains(id)) {
            tracing::error!(volume = %id, %node, "the engine no longer has the volume");
            miss(app, *id, "the engine no longer has the volume").await?;
        }
        for id in found.incomplete.into_iter().take(MAX_CALLS) {
            if let Err(error) = complete(app, driver, id).await? {
                tracing::warn!(volume = %id, %node, %error, "cannot complete the volume");
            }
        }
        for id in found.returned {
            tracing::info!(volume = %id, %node, "the engine has the volume again");
            returned(app, id).await?;
        }
        let before = mem::replace(&mut self.orphans, found.orphans.iter().copied().collect());
        let twice = found.orphans.iter().filter(|id| before.contains(id));
        for id in twice.take(MAX_CALLS) {
            tracing::warn!(volume = %id, %node, "volume without a row, removing it");
            if let Err(error) = driver.unmake_volume(*id).await {
                tracing::warn!(volume = %id, %error, "cannot remove the volume");
            }
        }
        for id in found.unknown {
            // It is newer than the database, which was restored, or its label is false.
            if self.unknown.len() < MAX_UNKNOWN && self.unknown.insert(id) {
                tracing::warn!(volume = %id, %node, "unknown volume with this installation's label, leaving it alone");
            }
        }
        Ok(self)
    }
}

/// Asks the node to complete a volume that it has had.
async fn complete(
    app: &App,
    driver: &NodeDriver,
    id: VolumeId,
) -> Result<Result<(), PluginError>, Error> {
    let row = app.db.read(|rows| rows.get(&VOLUMES, id))?;
    Ok(match row.filter(|row| !row.deleted) {
        Some(row) => make_volume(app, driver, &row).await.map(drop),
        None => Ok(()),
    })
}

/// Puts a ready volume into error that its node has no more.
pub async fn miss(app: &App, id: VolumeId, why: &'static str) -> Result<(), Error> {
    let decide = move |view: &View<'_>| {
        let changes = match view.rows.get(&VOLUMES, id)? {
            Some(row) if !row.deleted && row.made && row.failure.is_none() => {
                fail(row, view, VolumeFailure::Missing, why)
            }
            _ => Changes::none(),
        };
        Ok(((), changes))
    };
    app.db.write_essential(decide).await
}

/// Makes a volume ready again that its node has again.
async fn returned(app: &App, id: VolumeId) -> Result<(), Error> {
    let decide = move |view: &View<'_>| {
        let changes = match view.rows.get(&VOLUMES, id)? {
            Some(row) if !row.deleted && row.failure == Some(VolumeFailure::Missing) => {
                let row = Volume {
                    failure: None,
                    ..row
                };
                Changes::none().record_volume(row, view.now, VolumeEvent::Ready)
            }
            _ => Changes::none(),
        };
        Ok(((), changes))
    };
    app.db.write_essential(decide).await
}
