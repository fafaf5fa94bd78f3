//! The event log of an instance, for the operator.

use super::find::Selector;
use super::operator::no_instance;
use serde::{Deserialize, Serialize};
use std::fmt;
use wharf_db::{Db, EventRow, Read};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::money::usd;
use wharf_domain::placement::Allocation;
use wharf_domain::shortage::Shortage;

/// One line of an instance's event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// Time in ISO 8601.
    pub at: String,
    /// Kind of the event.
    pub what: String,
    /// State after the event.
    pub state: String,
    /// vCPUs, GiB of RAM and GiB of disk after the event.
    pub size: [u32; 3],
    /// Reason that the driver or engine gave.
    pub why: Option<String>,
    /// The party that caused the event, such as `key:` with the id of the key.
    pub actor: String,
}

/// Returns the event log of an instance. A name only finds living instances; a UUID finds all.
pub fn events(db: &Db, selector: &Selector) -> Result<Vec<EventLine>, Error> {
    let found = db.read(|rows| {
        let id = match selector {
            Selector::Id(id) => Some(*id),
            Selector::Name(name) => rows.id_of_name(name)?,
        };
        id.map_or(Ok(Vec::new()), |id| rows.event_rows(id))
    })?;
    if found.is_empty() {
        return Err(no_instance(selector));
    }
    Ok(found.iter().map(EventLine::from).collect())
}

impl From<&EventRow> for EventLine {
    fn from(row: &EventRow) -> Self {
        let event = &row.event;
        let (what, why) = describe(&event.what);
        let why = match event.what {
            EventKind::Renamed => row.name.clone(),
            _ => why,
        };
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
            actor: row.initiator.to_string(),
        }
    }
}

pub(super) fn describe(what: &EventKind) -> (&'static str, Option<String>) {
    match what {
        EventKind::Created => ("created", None),
        EventKind::Ready => ("ready", None),
        EventKind::Failed(why) => ("failed", Some(why.clone())),
        EventKind::Stopped => ("stopped", None),
        EventKind::Released => ("compute-released", None),
        EventKind::Died(why) => ("died", Some(why.clone())),
        EventKind::Restarted => ("restarted", None),
        EventKind::RestartFailed(why) => ("restart-failed", Some(why.clone())),
        EventKind::Resized => ("resized", None),
        EventKind::ResizeRefused { field, message } => {
            let field = field.as_deref().unwrap_or("no answer");
            ("resize-refused", Some(format!("{field}: {message}")))
        }
        EventKind::Renamed => ("renamed", None),
        EventKind::PortsChanged => ("ports-changed", None),
        EventKind::Deleted => ("deleted", None),
        EventKind::Purged => ("purged", None),
        EventKind::Forgotten => ("forgotten", None),
        EventKind::BillCorrected { nano_usd, reason } => {
            let amount = usd(*nano_usd);
            ("bill-corrected", Some(format!("{amount} USD: {reason}")))
        }
        EventKind::Suspended(reason) => ("suspended", Some(reason.clone())),
        EventKind::Resumed => ("resumed", None),
        EventKind::HostKeyChanged(keys) => ("host-key-changed", Some(keys.clone())),
        EventKind::NodeDrained => ("node-drained", None),
        EventKind::Moving => ("moving", None),
        EventKind::Moved(ways) => ("moved", Some(ways.to_string())),
        EventKind::MoveFailed(why) => ("move-failed", Some(why.clone())),
        EventKind::Lost => ("lost", None),
        EventKind::Recreated => ("recreated", None),
        EventKind::AllocationLost(lost, ways) => {
            let kind = match ways {
                Some(_) => "reallocated",
                None => "failed",
            };
            (kind, Some(held(lost)))
        }
        EventKind::DiskGrowing(progress) => ("disk-growing", Some(progress.clone())),
        EventKind::RestartShort(short) => ("restart-failed", Some(shortages(short))),
        EventKind::ResizeShort(short) => ("resize-refused", Some(shortages(short))),
    }
}

/// Describes allocations that something outside Wharf holds.
pub(super) fn held(lost: &[Allocation]) -> String {
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    // Engines do not tell a device that is in use from one that is gone.
    if lost.iter().all(|what| matches!(what, Allocation::Gpu(_))) {
        format!("the host cannot provide {names}")
    } else {
        format!("something outside Wharf holds {names} on the host")
    }
}

/// Describes shortages.
pub(super) fn shortages(short: &[Shortage]) -> String {
    let one = |s: &Shortage| {
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
            "{}\t{}\t{}\t{n_vcpus} vCPU, {mem_gib} GiB, {disk_size_gib} GiB disk\t{}\t{}",
            self.at,
            self.what,
            self.state,
            self.actor,
            self.why.as_deref().unwrap_or("-")
        )
    }
}
