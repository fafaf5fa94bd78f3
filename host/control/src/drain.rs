//! The drain of a node: no new instances on it, and no start of stopped ones, until it is resumed.

use super::audit::record;
use super::operator::Operator;
use serde::{Deserialize, Serialize};
use wharf_db::{Change, Changes, Read};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::NodeId;

/// An instance that is left on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftLine {
    /// UUID of the instance.
    pub instance: String,
    pub name: String,
    /// E-mail address of the owner.
    pub owner: String,
    pub state: String,
}

impl Operator<'_> {
    /// Begins or ends the drain of a node. Returns the instances that are left on it.
    pub async fn drain_node(&self, name: &str, drained: bool) -> Result<Vec<LeftLine>, Error> {
        let node = NodeId(name.to_owned());
        if !self.config.node.iter().any(|node| node.name == name) {
            return Err(FieldErrors::one("node", format!("no node is called {name:?}")).into());
        }
        let id = node.clone();
        let decided = self.db.write(move |view| {
            if view.rows.is_drained(&id)? == drained {
                return Ok(((), Changes::none()));
            }
            let (operation, result) = match drained {
                true => ("node.drain", "drained"),
                false => ("node.resume", "resumed"),
            };
            let audited = record(view, &Origin::operator(), operation, None, &id.0, result);
            let change = Change::Drain(id.clone(), drained);
            Ok(((), Changes::none().with(change).with(audited)))
        });
        decided.await?;
        self.left_on(&node)
    }

    fn left_on(&self, node: &NodeId) -> Result<Vec<LeftLine>, Error> {
        self.db.read(|rows| {
            let mut lines = Vec::new();
            for id in rows.claims_on(node)? {
                let Some(instance) = rows.instance(id)? else {
                    continue;
                };
                lines.push(LeftLine {
                    instance: id.to_string(),
                    owner: rows.email_of(instance.owner)?.unwrap_or_default(),
                    state: instance.state().to_string(),
                    name: instance.name.as_str().to_owned(),
                });
            }
            Ok(lines)
        })
    }
}
