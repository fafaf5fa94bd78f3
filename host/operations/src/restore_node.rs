//! The end of a loss: the lost instances of a node, made again from their newest backups.

use super::Operator;
use serde::{Deserialize, Serialize};
use wharf_db::{LOST, Read as _, Rows as _};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::NodeId;
use wharf_domain::instance::Intent;
use wharf_domain::time::Timestamp;
use wharf_ground::users::USERS;
use wharf_instances::Recreated;

/// A lost instance, after the attempt to make it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedLine {
    /// UUID of the instance.
    pub instance: String,
    pub name: String,
    /// E-mail address of the owner.
    pub owner: String,
    /// Time of the backup that its disk is made of.
    pub backup: Option<Timestamp>,
    /// Names of the volumes that it comes back without.
    pub volumes_lost: Vec<String>,
    /// Why it is still lost.
    pub reason: Option<String>,
}

impl Operator<'_> {
    /// Makes the lost instances of a node again, each in one write, the oldest first. A later call goes on with those
    /// that are still lost.
    pub async fn restore_node(&self, name: &str) -> Result<Vec<RescuedLine>, Error> {
        let refuse = |why: String| Err(FieldErrors::one("node", why).into());
        let Some(app) = self.app else {
            return refuse("start the server first: it makes the instances".to_owned());
        };
        let node = NodeId(name.to_owned());
        let lost = self.db.read(|rows| {
            let mut lost = Vec::new();
            for id in rows.keys_under(&LOST, &())? {
                let row = rows.instance(id?)?;
                lost.extend(row.filter(|row| row.node == node && row.intent != Intent::Delete));
            }
            lost.sort_by_key(|row| (row.created_at, row.id));
            Ok::<_, Error>(lost)
        })?;
        if lost.is_empty() && !self.config.node.iter().any(|known| known.name == name) {
            return refuse(format!(
                "no node is called {name:?}, and none lost instances"
            ));
        }
        let mut lines = Vec::new();
        for row in lost {
            let (recreated, reason) = match app.rescue(row.id).await {
                Ok(recreated) => (recreated, None),
                Err(error @ Error::Internal(_)) => return Err(error),
                Err(error) => (Recreated::default(), Some(words(&error))),
            };
            lines.push(RescuedLine {
                instance: row.id.to_string(),
                name: row.name.as_str().to_owned(),
                owner: self
                    .db
                    .read(|rows| rows.get(&USERS, row.owner))?
                    .unwrap_or_default(),
                backup: recreated.from,
                volumes_lost: recreated.volumes_lost,
                reason,
            });
        }
        Ok(lines)
    }
}

/// Why an instance is not made again, in a line.
fn words(error: &Error) -> String {
    let (what, short) = match error {
        Error::Fields(errors) => {
            let words = errors.0.values().flatten().cloned();
            return words.collect::<Vec<_>>().join("; ");
        }
        Error::Insufficient(short) => ("no node has enough", short),
        Error::OverQuota(short) => ("the quota of its owner lacks", short),
        error => return error.to_string(),
    };
    let fields = short.fields.iter().map(|(field, ..)| *field);
    format!("{what}: {}", fields.collect::<Vec<_>>().join(", "))
}
