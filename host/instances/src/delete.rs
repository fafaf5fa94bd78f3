//! `DELETE`: the instance disappears for its user at once, in every state, even if its node is
//! unreachable. Its claim is released once the node no longer has it.

use super::find::Selector;
use super::{App, InstanceCondition, snapshots};
use wharf_db::Read as _;
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::Intent;
use wharf_ground::caller::Caller;

impl App {
    pub async fn delete(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
    ) -> Result<(), Error> {
        let target = self.target(caller, selector, condition);
        let (id, node) = self
            .change_essential(caller, "instance.delete", move |view| {
                let mut instance = target.find(view.rows)?;
                let id = instance.id;
                instance.intend(Intent::Delete, None);
                instance.resize = None;
                let node = instance.node.clone();
                let mut changes =
                    snapshots::delete_all(view, id)?.record(instance, view.now, EventKind::Deleted);
                // A lost instance is on no node.
                if view.rows.is_lost(id)? {
                    let row = changes.instance()?;
                    changes = changes.event(&row, view.now, EventKind::Purged);
                    changes = changes.drop_instance(id);
                }
                Ok(((id, node), changes))
            })
            .await?;
        self.nodes.work_on_snapshots(&node);
        self.nudge(caller, id).await;
        Ok(())
    }
}
