//! `recreate/`: creates an instance again that was lost with its node. It keeps its UUID, name, flavor, size,
//! keys and rates, and has a new disk, new addresses and new ports.

use super::content::CONTENT;
use super::find::Selector;
use super::host_keys::HOST_KEYS;
use super::{App, InstanceCondition, InstanceView, moves, quota, suspension};
use wharf_db::{Changes, Read as _};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::{Intent, ResourceType};
use wharf_ground::caller::Caller;

/// The open port of a new virtual machine.
const NEW: [u16; 1] = [22];

impl App {
    /// Places a lost instance again. The reconciler makes it after the answer.
    pub async fn recreate(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
    ) -> Result<InstanceView, Error> {
        let (owner, target) = (caller.user, self.target(caller, selector, condition));
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        let deadline = self.deadline(self.clock.now());
        let decided = self.change(caller, "instance.recreate", move |view| {
            let row = target.find(view.rows)?;
            let id = row.id;
            suspension::check(view.rows, &row)?;
            if !view.rows.is_lost(id)? {
                return Err(Error::NotApplicable(
                    "only an instance whose host was lost can be created again",
                ));
            }
            let limits = quota::limits(view.rows, owner, defaults)?;
            let request = moves::requirements(view.rows, &row)?;
            let placement = quota::place(&inventory, limits, &request)?;
            if row.resource_type == ResourceType::Vm {
                quota::open(&inventory, limits, owner, [&NEW, &row.wan_ports])?;
            }
            let claim = placement.claim;
            let mut row = moves::relocated(row, &claim, &placement.ssh_host);
            (row.provisioned, row.failed) = (false, false);
            row.intend(Intent::Run, Some(deadline));
            let changes = Changes::none()
                .set_lost(id, false)
                .put_claim(id, claim)
                .put(&HOST_KEYS, id, Vec::new())
                .remove(&CONTENT, id)
                .record(row, view.now, EventKind::Recreated);
            Ok((changes.instance()?, changes))
        });
        let instance = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nudge(caller, instance.id).await;
        Ok(self.view(caller, instance))
    }
}
