//! `restart/`: claims compute resources again on the node that has the disk.

use super::find::Selector;
use super::{App, Caller, InstanceView, quota};
use wharf_db::{Change, Changes, Read};
use wharf_domain::error::Error;
use wharf_domain::event::What;
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::state::InstanceState;

impl App {
    /// Starts a stopped instance and waits for a limited time until it is reachable.
    pub async fn restart(
        &self,
        caller: &Caller,
        selector: &Selector,
    ) -> Result<InstanceView, Error> {
        let (owner, target) = (caller.user, self.target(caller, selector));
        let deadline = self.deadline(self.clock.now());
        let (scheduler, defaults) = (self.scheduler.clone(), self.config().quota.limits());
        let started = self
            .change(caller, "instance.restart", move |view| {
                let mut instance = target.find(view.rows)?;
                let state = instance.state();
                if !matches!(state, InstanceState::ShutOff | InstanceState::Exited) {
                    return Err(Error::State {
                        verb: "restart",
                        state,
                        needed: "shut_off or exited",
                    });
                }
                let mut changes = Changes::none();
                let mut claim = view
                    .rows
                    .claim(instance.id)?
                    .ok_or_else(|| Error::internal(format!("{} has no claim", instance.id)))?;
                // A stop in progress still holds its claim, and the restart keeps it.
                if !claim.compute {
                    let limits = quota::limits(view.rows, owner, defaults)?;
                    quota::reclaim(&scheduler, limits, &claim)?;
                    scheduler.reclaim(&claim)?;
                    claim.compute = true;
                    changes = changes.with(Change::PutClaim(instance.id, claim));
                }
                instance.intend(Intent::Run, Some(deadline));
                let changes = changes.record(instance, view.now, What::Restarted);
                Ok((changes.instance()?, changes))
            })
            .await?;
        self.nudge(caller, started.id);
        self.wait_settled(&started).await;
        self.check_started(&started)?;
        Ok(self.view(caller, started))
    }

    /// Fails if the event log says that the node cannot start the instance.
    fn check_started(&self, started: &Instance) -> Result<(), Error> {
        let since = usize::try_from(started.events).unwrap_or(usize::MAX);
        let events = self.db.read(|rows| rows.events(started.id))?;
        let failed = events
            .into_iter()
            .skip(since)
            .find_map(|event| match event.what {
                What::RestartFailed(why) => Some(Error::NotStarted(why)),
                What::RestartShort(short) => Some(Error::Insufficient(short.into())),
                _ => None,
            });
        failed.map_or(Ok(()), Err)
    }
}
