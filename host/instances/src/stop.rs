//! `stop/`: the visible state changes and compute billing ends with the write. The compute claim is
//! released once the node has stopped the instance.

use super::find::Selector;
use super::{App, InstanceCondition, InstanceView};
use wharf_db::{Changes, Read};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::{Intent, Progress};
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;

/// How far a stop has come when its request is answered. It is durable and billed in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The node has stopped the instance.
    Done,
    /// The node has not confirmed it yet.
    UnderWay,
    /// The node is out of reach, and stops the instance when it is back.
    Away,
}

impl App {
    /// Stops a running instance and waits for a limited time until the node has stopped it. It does not
    /// wait for a node that is out of reach.
    pub async fn stop(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
    ) -> Result<(InstanceView, Stopped), Error> {
        let target = self.target(caller, selector, condition);
        let stopped = self
            .change_essential(caller, "instance.stop", move |view| {
                let mut instance = target.find(view.rows)?;
                let state = instance.state();
                if state != InstanceState::Running {
                    return Err(Error::State {
                        verb: "stop",
                        state,
                        needed: "running",
                    });
                }
                instance.intend(Intent::Stop, None);
                // Cancel a resize that the node has not confirmed; the old size stays.
                instance.resize = None;
                let changes = Changes::none().record(instance, view.now, EventKind::Stopped);
                Ok((changes.instance()?, changes))
            })
            .await?;
        self.nudge(caller, stopped.id).await;
        self.wait_settled(&stopped).await;
        let (now, claim) = self.db.read(|rows| {
            let now = rows.instance(stopped.id)?;
            Ok::<_, Error>((now, rows.claim(stopped.id)?))
        })?;
        // A change of its volumes may be left to do after the stop.
        let pending = claim.is_some_and(|claim| claim.compute)
            && now.is_some_and(|now| {
                now.generation == stopped.generation && now.progress == Progress::Pending
            });
        let outcome = if !pending {
            Stopped::Done
        } else if self.nodes.is_away(&stopped.node) {
            Stopped::Away
        } else {
            Stopped::UnderWay
        };
        Ok((self.view(caller, stopped), outcome))
    }
}
