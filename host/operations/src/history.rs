//! The event log of an instance, volume or snapshot, for the operator.

use super::no_instance;
use serde::{Deserialize, Serialize};
use std::fmt;
use wharf_db::{Db, EventRow, Read};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::kept::KeptKind as _;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
use wharf_instances::Selector;
use wharf_instances::event_text::describe;

/// One line of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// Time in ISO 8601.
    pub at: String,
    /// Kind of the event.
    pub what: String,
    /// State of the instance or volume after the event.
    pub state: String,
    /// The kind of what the event is of; `None` for an instance.
    #[serde(default)]
    pub of: Option<String>,
    /// vCPUs, GiB of RAM and GiB of disk after the event. A volume or a snapshot has a disk alone.
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
            state: match &event.what {
                EventKind::Volume(status, _) | EventKind::Snapshot(_, status, _) => {
                    status.as_str().to_owned()
                }
                _ => event.state.to_string(),
            },
            of: match &event.what {
                EventKind::Volume(..) => Some(OfVolume::WORD.to_owned()),
                EventKind::Snapshot(..) => Some(OfSnapshot::WORD.to_owned()),
                _ => None,
            },
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

impl fmt::Display for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [n_vcpus, mem_gib, disk_size_gib] = self.size;
        let size = match n_vcpus {
            0 => format!(
                "{} of {disk_size_gib} GiB",
                self.of.as_deref().unwrap_or("disk")
            ),
            _ => format!("{n_vcpus} vCPU, {mem_gib} GiB, {disk_size_gib} GiB disk"),
        };
        write!(
            f,
            "{}\t{}\t{}\t{size}\t{}\t{}",
            self.at,
            self.what,
            self.state,
            self.actor,
            self.why.as_deref().unwrap_or("-")
        )
    }
}
