//! Removal of an instance from the books, without its node.

use super::{Operator, no_instance};
use wharf_db::{Changes, Read as _};
use wharf_domain::audit::Origin;
use wharf_domain::driver::Tag;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::{Instance, Intent};
use wharf_ground::audit::record;
use wharf_instances::snapshots::delete_all;
use wharf_instances::{NodeState, Selector};

impl Operator<'_> {
    /// Removes an instance that will never come back: its ledger is closed, and its claims, ports and
    /// addresses are free. Refuses if its node may still have it, unless forced.
    pub async fn forget(&self, selector: &Selector, force: bool) -> Result<InstanceId, Error> {
        let instance = self.db.read(|rows| {
            let id = match selector {
                Selector::Id(id) => Some(*id),
                Selector::Name(name) => rows.id_of_name(name)?,
            };
            id.map_or(Ok(None), |id| rows.instance(id))
        })?;
        let Some(instance) = instance else {
            return Err(no_instance(selector));
        };
        if !force && self.config.node.iter().any(|n| n.name == instance.node.0) {
            self.check_out_of_reach(&instance).await?;
        }
        let id = instance.id;
        self.db
            .write_essential(move |view| {
                let Some(mut row) = view.rows.instance(id)? else {
                    return Ok(((), Changes::none()));
                };
                let (origin, subject) = (Origin::operator(), id.to_string());
                let owner = Some(row.owner);
                let audited = record(
                    view,
                    &origin,
                    "instance.forget",
                    owner,
                    &subject,
                    "forgotten",
                );
                row.intend(Intent::Delete, None);
                row.resize = None;
                let changes = delete_all(view, id)?
                    .record(row, view.now, EventKind::Forgotten)
                    .drop_instance(id)
                    .with(audited);
                Ok(((), changes))
            })
            .await?;
        tracing::warn!(instance = %id, node = %instance.node, "the operator has removed the instance from the books");
        if let Some(app) = self.app {
            app.waiters().notify(id);
        }
        Ok(id)
    }

    /// Fails if the instance's node can still be asked to delete it.
    async fn check_out_of_reach(&self, instance: &Instance) -> Result<(), Error> {
        let node = &instance.node;
        let Some(app) = self.app else {
            return refuse(&format!(
                "node {node} is configured, and only a running server knows whether it is in reach: \
                 start the server, or add --force"
            ));
        };
        let Some(driver) = app.driver(node) else {
            return Ok(());
        };
        let tag = Tag {
            instance: instance.id,
            incarnation: instance.incarnation,
        };
        let (driver, generation) = (driver.clone(), instance.generation);
        let answers = app.call(async move { driver.inspect(tag, generation).await });
        match answers.await {
            Ok(_) if !matches!(app.nodes().state(node), NodeState::Outage(_)) => refuse(&format!(
                "node {node} is in reach: delete the instance over the API, or add --force"
            )),
            _ => Ok(()),
        }
    }
}

fn refuse<T>(why: &str) -> Result<T, Error> {
    Err(FieldErrors::one("instance", why).into())
}
