//! The part of a node's observer that deals with differences of volumes and snapshots, on the node's own store.

use super::keeper::fail;
use super::kept_differences::KeptDifferences;
use super::on_node::OnNode;
use crate::App;
use std::collections::BTreeSet;
use std::mem;
use wharf_db::{Changes, Rows as _, View};
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::kept::{Kept, KeptEvent, KeptFailure};
use wharf_plugin::NodeDriver;

/// Orphans removed, and volumes completed, at one look; the others wait for the next look.
const MAX_CALLS: usize = 32;
/// Unknown ones remembered, so that each is logged once.
const MAX_UNKNOWN: usize = 100;

/// The findings of the last look at a node's volumes or snapshots.
pub struct KeptLooks<K: OnNode> {
    orphans: BTreeSet<K::Id>,
    missing: BTreeSet<K::Id>,
    unknown: BTreeSet<K::Id>,
}

impl<K: OnNode> Default for KeptLooks<K> {
    fn default() -> Self {
        Self {
            orphans: BTreeSet::new(),
            missing: BTreeSet::new(),
            unknown: BTreeSet::new(),
        }
    }
}

impl<K: OnNode> KeptLooks<K> {
    /// Deals with the differences that two looks in a row have found: a list may be older than the rows.
    pub async fn deal_with(
        mut self,
        app: &App,
        node: &NodeId,
        driver: &NodeDriver,
        found: KeptDifferences<K>,
    ) -> Result<Self, Error> {
        let before = mem::replace(&mut self.missing, found.missing.iter().copied().collect());
        for id in found.missing.iter().filter(|id| before.contains(id)) {
            let why = format!("the engine no longer has the {}", K::WORD);
            tracing::error!(%id, %node, "{why}");
            miss::<K>(app, *id, why).await?;
        }
        for id in found.incomplete.into_iter().take(MAX_CALLS) {
            if let Err(error) = complete::<K>(app, driver, id).await? {
                tracing::warn!(%id, %node, %error, "cannot complete the {}", K::WORD);
            }
        }
        for id in found.returned {
            tracing::info!(%id, %node, "the engine has the {} again", K::WORD);
            returned::<K>(app, id).await?;
        }
        let now = found.orphans.iter().map(|(id, _)| *id).collect();
        let before = mem::replace(&mut self.orphans, now);
        let twice = found.orphans.iter().filter(|(id, _)| before.contains(id));
        for (id, whose) in twice.take(MAX_CALLS) {
            // A volume may have been made again here since the look.
            let row = app.db.read(|rows| rows.get(K::ROWS, *id))?;
            if row.is_some_and(|row| row.node == *node && row.is_pending() && !row.deleted) {
                continue;
            }
            tracing::warn!(%id, %node, "{} without a row, removing it", K::WORD);
            if let Err(error) = K::unmake(driver, *id, *whose).await {
                tracing::warn!(%id, %error, "cannot remove the {}", K::WORD);
            }
        }
        for id in found.unknown {
            // It is newer than the database, which was restored, or its label is false.
            if self.unknown.len() < MAX_UNKNOWN && self.unknown.insert(id) {
                tracing::warn!(%id, %node, "unknown {} with this installation's label, leaving it alone", K::WORD);
            }
        }
        Ok(self)
    }
}

/// Asks the node to complete one that it has had.
async fn complete<K: OnNode>(
    app: &App,
    driver: &NodeDriver,
    id: K::Id,
) -> Result<Result<(), PluginError>, Error> {
    let row = app.db.read(|rows| rows.get(K::ROWS, id))?;
    Ok(match row.filter(|row| !row.deleted) {
        Some(row) => K::make(app, driver, &row, &mut K::Held::default())
            .await
            .map(drop),
        None => Ok(()),
    })
}

/// Puts a ready one into error that its node has no more.
pub async fn miss<K: OnNode>(app: &App, id: K::Id, why: String) -> Result<(), Error> {
    let decide = move |view: &View<'_>| {
        let changes = match view.rows.get(K::ROWS, id)? {
            Some(row) if !row.deleted && row.made && row.failure.is_none() => {
                fail(row, view, KeptFailure::Missing, &why)
            }
            _ => Changes::none(),
        };
        Ok(((), changes))
    };
    app.db.write_essential(decide).await
}

/// Makes one ready again that its node has again.
async fn returned<K: OnNode>(app: &App, id: K::Id) -> Result<(), Error> {
    let decide = move |view: &View<'_>| {
        let changes = match view.rows.get(K::ROWS, id)? {
            Some(row) if !row.deleted && row.failure == Some(KeptFailure::Missing) => {
                let row = Kept {
                    failure: None,
                    ..row
                };
                Changes::none().record_kept(row, view.now, KeptEvent::Ready)
            }
            _ => Changes::none(),
        };
        Ok(((), changes))
    };
    app.db.write_essential(decide).await
}
