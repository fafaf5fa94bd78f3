//! The parts of use cases that volumes and snapshots share.

use crate::{App, Condition, Nodes};
use wharf_db::{Changes, KeptTable, Rows};
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, UserId};
use wharf_domain::kept::{Kept, KeptEvent};
use wharf_domain::time::Timestamp;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

/// A kind of kept data in use cases.
pub trait KeptUse: KeptTable {
    /// The data that a user may see.
    type View: Send + 'static;
    /// The part of a view that is not in rows.
    type Context: Send + 'static;

    fn context(app: &App, caller: &Caller) -> Self::Context;

    fn view(
        rows: &impl Rows,
        context: &Self::Context,
        row: Kept<Self>,
    ) -> Result<Self::View, Error>;

    /// One of the user's own.
    fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Kept<Self>, Error>;

    /// One that the caller may see.
    fn readable(rows: &impl Rows, caller: &Caller, named: &str) -> Result<Kept<Self>, Error>;

    /// Fails if it cannot be deleted now.
    fn refuse_in_use(rows: &impl Rows, row: &Kept<Self>) -> Result<(), Error>;

    /// Makes the keeper of a node read its rows.
    fn work_on(nodes: &Nodes, node: &NodeId);
}

/// The place of a new row in the order of creation. Places of removed rows are not taken again, so that a
/// client's page stays in its place.
pub(crate) fn next_seq(last: Option<u64>, now: Timestamp) -> u64 {
    let now = u64::try_from(now.0).unwrap_or_default();
    last.map_or(now, |last| now.max(last.saturating_add(1)))
}

/// Deletes it for its user. Its claim is released once the node was seen without it.
pub(crate) fn delete<K: KeptTable>(mut row: Kept<K>, now: Timestamp, what: KeptEvent) -> Changes {
    row.deleted = true;
    let changes = Changes::none().record_kept(row.clone(), now, what);
    // A lost one is on no node.
    if row.is_lost() {
        changes.drop_kept(&row)
    } else {
        changes
    }
}

impl App {
    /// A volume or a snapshot as the caller sees it.
    pub(crate) fn kept_view<K: KeptUse>(
        &self,
        caller: &Caller,
        row: Kept<K>,
    ) -> Result<K::View, Error> {
        let context = K::context(self, caller);
        self.db.read(|rows| K::view(rows, &context, row))
    }

    /// Returns a volume or a snapshot that the caller may see.
    pub fn kept<K: KeptUse>(&self, caller: &Caller, named: &str) -> Result<K::View, Error> {
        let context = K::context(self, caller);
        self.db.read(|rows| {
            let row = K::readable(rows, caller, named)?;
            K::view(rows, &context, row)
        })
    }

    /// Deletes one of the caller's volumes or snapshots with its data, unless it is in use.
    pub async fn delete_kept<K: KeptUse>(
        &self,
        caller: &Caller,
        named: &str,
        condition: &Condition<K::View>,
    ) -> Result<(), Error> {
        let (owner, named, origin) = (caller.user, named.to_owned(), caller.origin());
        let (condition, context) = (condition.clone(), K::context(self, caller));
        let decided = self.db.write_essential(move |view| {
            let row = K::own(view.rows, owner, &named)?;
            condition.check(|| K::view(view.rows, &context, row.clone()))?;
            K::refuse_in_use(view.rows, &row)?;
            let (node, name) = (row.node.clone(), row.name.to_string());
            let changes = delete(row, view.now, KeptEvent::Deleted).by(&origin);
            let operation = format!("{}.delete", K::WORD);
            let audited = record(view, &origin, &operation, Some(owner), &name, "deleted");
            Ok((node, changes.with(audited)))
        });
        let node = decided.await?;
        K::work_on(&self.nodes, &node);
        Ok(())
    }
}
