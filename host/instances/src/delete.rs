//! `DELETE`: the instance disappears for its user at once, in every state, even if its node is
//! unreachable. Its claim is released once the node no longer has it.

use super::find::Selector;
use super::{App, InstanceCondition};
use wharf_db::{Changes, Read as _};
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
        let id = self
            .change_essential(caller, "instance.delete", move |view| {
                let mut instance = target.find(view.rows)?;
                let id = instance.id;
                instance.intend(Intent::Delete, None);
                instance.resize = None;
                let mut changes = Changes::none().record(instance, view.now, EventKind::Deleted);
                // A lost instance is on no node.
                if view.rows.is_lost(id)? {
                    let row = changes.instance()?;
                    changes = changes.event(&row, view.now, EventKind::Purged);
                    changes = changes.drop_instance(id);
                }
                Ok((id, changes))
            })
            .await?;
        self.nudge(caller, id).await;
        Ok(())
    }
}
