//! `add-port/` and `remove-port/`: open ports on a VM's public address.

use super::find::Selector;
use super::{App, InstanceCondition, InstanceView, quota};
use wharf_db::{Changes, Read, View};
use wharf_domain::blueprint::SSH_PORT;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::instance::{Instance, Intent, ResourceType};
use wharf_ground::caller::Caller;

/// Maximum number of open ports of one VM.
const MAX_PORTS: usize = 64;

impl App {
    /// Opens a port. Opening an open port changes nothing.
    pub async fn add_port(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        port: u16,
    ) -> Result<InstanceView, Error> {
        self.change_ports(caller, selector, condition, false, move |ports| {
            if !ports.contains(&port) {
                if ports.len() >= MAX_PORTS {
                    let message = format!("at most {MAX_PORTS} ports can be open");
                    return Err(FieldErrors::one("port", message));
                }
                ports.push(port);
                ports.sort_unstable();
            }
            Ok(())
        })
        .await
    }

    /// Closes a port. Closing a closed port changes nothing.
    pub async fn remove_port(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        port: u16,
    ) -> Result<InstanceView, Error> {
        self.change_ports(caller, selector, condition, true, move |ports| {
            if port == SSH_PORT {
                return Err(FieldErrors::one("port", "port 22 (SSH) cannot be removed"));
            }
            ports.retain(|open| *open != port);
            Ok(())
        })
        .await
    }

    async fn change_ports(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        closes: bool,
        change: impl Fn(&mut Vec<u16>) -> Result<(), FieldErrors> + Send + 'static,
    ) -> Result<InstanceView, Error> {
        let (owner, target) = (caller.user, self.target(caller, selector, condition));
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        let decide = move |view: &View<'_>| {
            let mut instance = target.find(view.rows)?;
            if instance.resource_type != ResourceType::Vm {
                return Err(Error::NotApplicable(
                    "ports can be opened on VMs only; this instance is a container",
                ));
            }
            if view.rows.is_lost(instance.id)? {
                return Err(Error::NotApplicable(
                    "the host of this instance was lost; create it again first",
                ));
            }
            let before = instance.wan_ports.clone();
            change(&mut instance.wan_ports)?;
            if instance.wan_ports == before {
                return Ok(((instance, false), Changes::none()));
            }
            let limits = quota::limits(view.rows, owner, defaults)?;
            quota::open(&inventory, limits, owner, [&before, &instance.wan_ports])?;
            // A stopped VM receives its ports at the next start.
            let pending = instance.intent == Intent::Run;
            if pending {
                let deadline = instance.deadline;
                instance.intend(Intent::Run, deadline);
            }
            let changes = Changes::none().record(instance, view.now, EventKind::PortsChanged);
            Ok(((changes.instance()?, pending), changes))
        };
        let operation = "instance.ports";
        let (instance, pending) = if closes {
            self.change_essential(caller, operation, decide).await?
        } else {
            self.change(caller, operation, decide).await?
        };
        if pending {
            self.nudge(caller, instance.id).await;
            self.wait_unless_provisioning(&instance).await;
        }
        Ok(self.view(caller, instance))
    }

    async fn wait_unless_provisioning(&self, instance: &Instance) {
        if instance.provisioned {
            self.wait_settled(instance).await;
        }
    }
}
