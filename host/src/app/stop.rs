//! `stop/`: the shown state changes and compute billing ends with the intent; the compute claim
//! goes when the node was seen to have stopped it.

use super::clock::now;
use super::find::{Selector, find};
use super::{App, Caller, InstanceView};
use crate::db::Changes;
use crate::domain::error::Error;
use crate::domain::event::What;
use crate::domain::instance::Intent;
use crate::domain::state::InstanceState;

impl App {
    /// Stops a running instance and waits, bounded, until the node has.
    pub async fn stop(&self, caller: &Caller, selector: &Selector) -> Result<InstanceView, Error> {
        let (owner, selector) = (caller.user, selector.clone());
        let stopped = self
            .db
            .write(move |view| {
                let mut instance = find(view.rows, owner, &selector)?;
                let state = instance.state();
                if state != InstanceState::Running {
                    return Err(Error::State {
                        verb: "stop",
                        state,
                        needed: "running",
                    });
                }
                instance.intend(Intent::Stop, None);
                // A change of size that the node has not taken is given up: the old size holds.
                instance.resize = None;
                let changes = Changes::none().record(instance, now(), What::Stopped);
                Ok((changes.instance()?, changes))
            })
            .await?;
        self.nudge(caller, stopped.id);
        self.wait_settled(&stopped).await;
        self.view(caller, stopped)
    }
}
