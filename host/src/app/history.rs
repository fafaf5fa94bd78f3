//! What an operator asks afterwards: what happened to an instance and why, and what a user owes.

use super::find::Selector;
use crate::db::{Db, Read};
use crate::domain::error::{Error, FieldErrors};
use crate::domain::event::{Event, What};
use crate::domain::ids::InstanceId;
use crate::domain::money::NANO;
use crate::domain::shortage::Short;
use crate::domain::time::Timestamp;
use crate::ledger;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One line of an instance's event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// When, ISO 8601.
    pub at: String,
    /// What happened.
    pub what: String,
    /// The state from then on.
    pub state: String,
    /// vCPUs, GiB of RAM, GiB of disk from then on.
    pub size: [u32; 3],
    /// Why, in the words of driver and engine.
    pub why: Option<String>,
}

/// What one instance cost in a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillLine {
    /// The instance, which may be long gone.
    pub uuid: String,
    /// 10⁻⁹ USD.
    pub nano_usd: u128,
}

/// The event log of an instance: a living one by name, any one by its UUID.
pub fn events(db: &Db, selector: &Selector) -> Result<Vec<EventLine>, Error> {
    let found = db.read(|rows| {
        let id = match selector {
            Selector::Id(id) => Some(*id),
            Selector::Name(name) => rows.id_of_name(name)?,
        };
        id.map_or(Ok(Vec::new()), |id| rows.events(id))
    })?;
    if found.is_empty() {
        return Err(Error::NotFound);
    }
    Ok(found.iter().map(EventLine::from).collect())
}

/// What a user's instances cost from one point in time to another, those that cost nothing left
/// out.
pub fn bill(db: &Db, email: &str, from: Timestamp, to: Timestamp) -> Result<Vec<BillLine>, Error> {
    db.read(|rows| {
        let user = rows
            .user_of_email(email)?
            .ok_or_else(|| FieldErrors::one("email", "no user has this address"))?;
        let mut lines = Vec::new();
        rows.each_ledger(|id: InstanceId, entries| {
            if entries.first().is_some_and(|e| e.owner == user) {
                let nano_usd = ledger::cost(entries, from, to);
                if nano_usd > 0 {
                    let uuid = id.to_string();
                    lines.push(BillLine { uuid, nano_usd });
                }
            }
        })?;
        Ok(lines)
    })
}

/// A sum in USD, to the last nano.
pub fn usd(nano: u128) -> String {
    let unit = u128::from(NANO);
    format!("{}.{:09}", nano / unit, nano % unit)
}

impl From<&Event> for EventLine {
    fn from(event: &Event) -> Self {
        let (what, why) = describe(&event.what);
        Self {
            at: event.at.to_rfc3339(),
            what: what.to_owned(),
            state: event.state.to_string(),
            size: [
                event.size.n_vcpus,
                event.size.mem_gib,
                event.size.disk_size_gib,
            ],
            why,
        }
    }
}

fn describe(what: &What) -> (&'static str, Option<String>) {
    match what {
        What::Created => ("created", None),
        What::Ready => ("ready", None),
        What::Failed(why) => ("failed", Some(why.clone())),
        What::Stopped => ("stopped", None),
        What::Released => ("compute-released", None),
        What::Died(why) => ("died", Some(why.clone())),
        What::Restarted => ("restarted", None),
        What::RestartFailed(why) => ("restart-failed", Some(why.clone())),
        What::Resized => ("resized", None),
        What::ResizeRefused { field, message } => {
            let field = field.as_deref().unwrap_or("no answer");
            ("resize-refused", Some(format!("{field}: {message}")))
        }
        What::Renamed => ("renamed", None),
        What::PortsChanged => ("ports-changed", None),
        What::Deleted => ("deleted", None),
        What::Purged => ("purged", None),
        What::RestartShort(short) => ("restart-failed", Some(lacking(short))),
        What::ResizeShort(short) => ("resize-refused", Some(lacking(short))),
    }
}

/// What the node said it has less of than was to be had.
fn lacking(short: &[Short]) -> String {
    let one = |s: &Short| {
        let field = s.quantity.as_str();
        format!("{field}: the node has {} of {}", s.available, s.requested)
    };
    let all: Vec<String> = short.iter().map(one).collect();
    all.join(", ")
}

impl fmt::Display for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [n_vcpus, mem_gib, disk_size_gib] = self.size;
        write!(
            f,
            "{}\t{}\t{}\t{n_vcpus} vCPU, {mem_gib} GiB, {disk_size_gib} GiB disk\t{}",
            self.at,
            self.what,
            self.state,
            self.why.as_deref().unwrap_or("-")
        )
    }
}
