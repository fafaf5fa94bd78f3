//! `DELETE`: gone for its user at once, from every state, whatever the node does. What it holds is
//! freed when the node was seen without it.

use super::clock::now;
use super::find::{Selector, find};
use super::{App, Caller};
use crate::db::Changes;
use crate::domain::error::Error;
use crate::domain::event::What;
use crate::domain::instance::Intent;

impl App {
    /// Deletes an instance.
    pub async fn delete(&self, caller: &Caller, selector: &Selector) -> Result<(), Error> {
        let (owner, selector) = (caller.user, selector.clone());
        let id = self
            .db
            .write(move |view| {
                let mut instance = find(view.rows, owner, &selector)?;
                let id = instance.id;
                instance.intend(Intent::Delete, None);
                instance.resize = None;
                let changes = Changes::none().record(instance, now(), What::Deleted);
                Ok((id, changes))
            })
            .await?;
        self.nudge(caller, id);
        Ok(())
    }
}
