//! `stop/`: the visible state changes and compute billing ends with the write. The compute claim is
//! released once the node has stopped the instance.

use super::find::Selector;
use super::{App, Caller, InstanceView};
use wharf_db::Changes;
use wharf_domain::error::Error;
use wharf_domain::event::What;
use wharf_domain::instance::Intent;
use wharf_domain::state::InstanceState;

impl App {
    /// Stops a running instance and waits for a limited time until the node has stopped it.
    pub async fn stop(&self, caller: &Caller, selector: &Selector) -> Result<InstanceView, Error> {
        let target = self.target(caller, selector);
        let stopped = self
            .change(caller, "instance.stop", move |view| {
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
                let changes = Changes::none().record(instance, view.now, What::Stopped);
                Ok((changes.instance()?, changes))
            })
            .await?;
        self.nudge(caller, stopped.id);
        self.wait_settled(&stopped).await;
        Ok(self.view(caller, stopped))
    }
}
