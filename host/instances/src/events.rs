//! The events of an owner's instances, in words for the owner.

use super::App;
use super::event_text::{backup_message, describe, held, shortages};
use super::find::Selector;
use super::growing::Work;
use super::reconciler::{LATE, NO_CONTENT};
use serde::Serialize;
use tokio::sync::watch;
use wharf_db::{EventRow, Read, ReadRows, TopicCounts};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::kept::{KeptEvent, KeptKind};
use wharf_domain::money::usd;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::OfVolume;
use wharf_ground::caller::Caller;

/// The types of events.
pub const KINDS: [&str; 49] = [
    "created",
    "ready",
    "failed",
    "stopped",
    "released",
    "died",
    "restarted",
    "restart-failed",
    "resized",
    "resize-refused",
    "renamed",
    "ports-changed",
    "deleted",
    "purged",
    "forgotten",
    "bill-corrected",
    "suspended",
    "resumed",
    "host-key-changed",
    "share-created",
    "share-changed",
    "share-removed",
    "page-visited",
    "volume-created",
    "volume-ready",
    "volume-failed",
    "volume-renamed",
    "volume-attached",
    "volume-detached",
    "volume-shared",
    "volume-unshared",
    "volume-deleted",
    "volume-recreated",
    "snapshot-created",
    "snapshot-ready",
    "snapshot-failed",
    "snapshot-deleted",
    "snapshot-plan-set",
    "snapshot-plan-removed",
    "snapshot-plan-failed",
    "restoring",
    "restored",
    "restore-failed",
    "backup-created",
    "backup-done",
    "backup-failed",
    "backup-plan-set",
    "backup-plan-removed",
    "backup-plan-failed",
];

/// An event as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OwnerEvent {
    /// Number among the owner's events, ascending without a gap.
    pub id: u64,
    /// Time in ISO 8601.
    pub at: Option<String>,
    /// UUID of the instance, or that of a snapshot; `None` in events of volumes alone.
    pub instance: Option<String>,
    /// UUID of the volume; `None` in events without one.
    pub volume: Option<String>,
    /// UUID of the snapshot; `None` in other events.
    pub snapshot: Option<String>,
    /// Name of the instance, volume or snapshot after the event.
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// State after the event.
    pub state: Option<&'static str>,
    pub n_vcpus: Option<u32>,
    pub mem_gib: Option<f64>,
    pub disk_size_gib: Option<u32>,
    /// Words for people.
    pub message: Option<String>,
    pub actor: Option<EventActor>,
}

/// The initiator of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventActor {
    pub kind: String,
    /// Public id of a key or session.
    pub id: Option<String>,
}

impl OwnerEvent {
    /// The payload of a webhook's test. It has no number among the events.
    pub fn test(at: Timestamp) -> Self {
        Self {
            at: Some(at.to_rfc3339()),
            kind: "test",
            message: Some("A test of this webhook.".to_owned()),
            ..Self::reset(0)
        }
    }

    /// The place of events that are no longer kept, before the first one that is.
    fn reset(id: u64) -> Self {
        Self {
            id,
            at: None,
            instance: None,
            volume: None,
            snapshot: None,
            name: None,
            kind: "reset",
            state: None,
            n_vcpus: None,
            mem_gib: None,
            disk_size_gib: None,
            message: None,
            actor: None,
        }
    }
}

impl From<EventRow> for OwnerEvent {
    fn from(row: EventRow) -> Self {
        let event = row.event;
        let (kind, id) = row.initiator.parts();
        // A volume or a snapshot has a disk alone.
        let is_instance = event.size.n_vcpus > 0;
        let id_text = event.instance.to_string();
        let (instance, volume, snapshot) = match &event.what {
            EventKind::Snapshot(instance, ..) => (Some(instance.to_string()), None, Some(id_text)),
            EventKind::VolumeAttached { volume, .. } | EventKind::VolumeDetached { volume, .. } => {
                (Some(id_text), Some(volume.to_string()), None)
            }
            _ if is_instance => (Some(id_text), None, None),
            _ => (None, Some(id_text), None),
        };
        Self {
            id: row.seq,
            at: Some(event.at.to_rfc3339()),
            instance,
            volume,
            snapshot,
            name: row.name.clone(),
            kind: kind_of(&event.what),
            state: Some(match &event.what {
                EventKind::Volume(status, _) | EventKind::Snapshot(_, status, _) => status.as_str(),
                _ => event.state.as_str(),
            }),
            n_vcpus: is_instance.then_some(event.size.n_vcpus),
            mem_gib: is_instance.then(|| f64::from(event.size.mem_gib)),
            disk_size_gib: Some(event.size.disk_size_gib),
            message: Some(match (&event.what, &row.name) {
                (EventKind::Renamed, Some(name)) => format!("The instance is now called {name}."),
                (EventKind::Volume(_, KeptEvent::Renamed), Some(name)) => {
                    format!("The volume is now called {name}.")
                }
                (what, _) => message(what),
            }),
            actor: Some(EventActor { kind, id }),
        }
    }
}

/// The events that follow a number.
#[derive(Debug)]
pub struct OwnerEvents {
    /// The number of the last event of the owner.
    pub last: u64,
    /// The number before the first event, if events between were removed.
    pub reset: Option<u64>,
    pub events: Vec<OwnerEvent>,
}

impl OwnerEvents {
    /// The events with the reset as the first one.
    pub fn with_reset(self) -> Vec<OwnerEvent> {
        let reset = self.reset.map(OwnerEvent::reset);
        reset.into_iter().chain(self.events).collect()
    }
}

impl App {
    /// Returns at most `limit` events of the caller's instances, or of one of them. They follow the number
    /// `after`, or begin with the oldest one.
    pub fn events(
        &self,
        caller: &Caller,
        instance: Option<InstanceId>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<OwnerEvents, Error> {
        let owner = caller.user;
        let (last, reset, rows) = self.db.read(|rows| {
            let (first, last) = (rows.trimmed_events(owner)?, rows.last_event(owner)?);
            let after = after.unwrap_or(first);
            // A number beyond the last event is from a database that a backup has replaced.
            let reset = if after > last {
                Some(last)
            } else {
                Some(first).filter(|first| after < *first)
            };
            let after = reset.unwrap_or(after);
            let found = match instance {
                Some(id) => rows.instance_events(id, after, limit)?,
                None => rows.owner_events(owner, after, limit)?,
            };
            Ok((last, reset, found))
        })?;
        Ok(OwnerEvents {
            last,
            reset,
            events: rows.into_iter().map(OwnerEvent::from).collect(),
        })
    }

    /// Returns the instance of the caller that a selector names. A UUID finds deleted ones, as long as
    /// their events are kept.
    pub fn instance_of_events(
        &self,
        caller: &Caller,
        selector: &Selector,
    ) -> Result<InstanceId, Error> {
        let own = |rows: &ReadRows| {
            let id = match selector {
                Selector::Id(id) => Some(*id),
                Selector::Name(name) => rows.id_of_name(name)?,
            };
            let Some(id) = id else { return Ok(None) };
            let first = rows.instance_events(id, 0, 1)?.pop();
            let first = first.filter(|row| row.owner == caller.user);
            Ok(first.map(|_| id))
        };
        self.db.read(own)?.ok_or(Error::NotFound)
    }

    /// Returns the number of the caller's last event.
    pub fn last_event(&self, caller: &Caller) -> Result<u64, Error> {
        self.db.read(|rows| rows.last_event(caller.user))
    }

    /// Changes after each commit with an event of a user.
    pub fn events_of(&self, owner: UserId) -> watch::Receiver<()> {
        self.db.events_of(owner)
    }

    /// Changes after each commit with a change of another list of a user.
    pub fn topics_of(&self, owner: UserId) -> watch::Receiver<TopicCounts> {
        self.db.topics_of(owner)
    }
}

fn kind_of(what: &EventKind) -> &'static str {
    match what {
        EventKind::Released => "released",
        what => describe(what).0,
    }
}

/// The words for the owner. Reasons of drivers and engines stay with the operator.
fn message(what: &EventKind) -> String {
    let text = match what {
        EventKind::Created => "The instance was requested and is being provisioned.",
        EventKind::Ready => "The instance is ready.",
        EventKind::Failed(why) if why == LATE => {
            "The instance did not become reachable in time. It costs nothing. Delete it and create it \
             again."
        }
        EventKind::Failed(why) if let Some(why) = why.strip_prefix(NO_CONTENT) => {
            return format!(
                "The instance did not get its content: {why}. It costs nothing. Delete it and create it again, \
                 from this backup or another one."
            );
        }
        EventKind::Failed(_) => {
            "The host could not make the instance. It costs nothing. Delete it and create it again; if \
             that fails too, ask the operator, whose log has the reason."
        }
        EventKind::Stopped => "The instance was stopped.",
        EventKind::Released => {
            "The host has stopped the instance; its vCPUs, RAM and GPUs are free."
        }
        EventKind::Died(_) => {
            "The instance ended by itself and is stopped. Its data is kept. Restart it to use it again."
        }
        EventKind::Restarted => "The instance was restarted.",
        EventKind::RestartFailed(why) if why == LATE => {
            "The instance did not become reachable in time after its restart. It is stopped, and its \
             data is kept. Try again."
        }
        EventKind::RestartFailed(_) => {
            "The host could not start the instance. It stays stopped, and its data is kept. Try again; \
             if that fails too, ask the operator, whose log has the reason."
        }
        EventKind::Resized => "The instance has its new size.",
        EventKind::ResizeRefused { field: None, .. } => {
            "The host could not be reached. The instance keeps its size. Try again shortly."
        }
        EventKind::ResizeRefused {
            field: Some(field),
            message,
        } => {
            return format!("The instance keeps its size. {field}: {message}.");
        }
        EventKind::Renamed => "The instance was renamed.",
        EventKind::PortsChanged => "The open ports of the instance were changed.",
        EventKind::Deleted => "The instance was deleted.",
        EventKind::Purged => "The host has removed the instance.",
        EventKind::DiskGrowing(progress) => return Work::Growing.describe(progress),
        EventKind::AllocationLost(lost, addresses) => {
            let held = held(lost);
            return match addresses {
                Some(addresses) => format!(
                    "Another try, as {held}. The time until now costs nothing. The instance has now: {addresses}."
                ),
                None => format!(
                    "The instance cannot be made, as {held}, and nothing is free in their place. It costs \
                     nothing. Delete it and create it again later."
                ),
            };
        }
        EventKind::RestartShort(short) if short.iter().any(|s| s.quantity.is_allocated()) => {
            let fields: Vec<_> = short.iter().map(|s| s.quantity.as_str()).collect();
            return format!(
                "Something outside Wharf holds on the host what the instance has: {}. The instance stays \
                 stopped, and its data is kept. Try again later; if that fails too, ask the operator.",
                fields.join(", ")
            );
        }
        EventKind::RestartShort(short) => {
            let short = shortages(short);
            return format!(
                "The host lacks resources for the restart. The instance stays stopped. {short}."
            );
        }
        EventKind::ResizeShort(short) => {
            let short = shortages(short);
            return format!(
                "The host lacks resources for the new size. The instance keeps its size. {short}."
            );
        }
        EventKind::Suspended(reason) => {
            return format!("The operator suspended the instance: {reason}");
        }
        EventKind::Resumed => {
            "The operator ended the suspension. Restart the instance to use it again."
        }
        EventKind::HostKeyChanged(keys) => {
            return format!("The instance shows another SSH host key than before: {keys}");
        }
        EventKind::ShareCreated(what) => return format!("The instance shares {what}."),
        EventKind::ShareChanged(what) => return format!("The instance now shares {what}."),
        EventKind::ShareRemoved(page) => {
            return format!("The instance does not share {page} any more.");
        }
        EventKind::PageVisited { page, visitor } => {
            return format!("{visitor} opened {page}, which you share.");
        }
        EventKind::NodeDrained => {
            "The operator empties the host of this instance. The instance runs on, and cannot start there \
             again once it is stopped. Stop it, or set `allow_moves` of your preferences, and it moves to \
             another host if there is one with room. An instance with volumes stays with them."
        }
        EventKind::Moving => {
            "The operator empties the host of this instance. The instance is stopped, and moves to \
             another host with its disk."
        }
        EventKind::Moved(addresses) => {
            return format!(
                "The instance is on another host, with its disk. It has now: {addresses}."
            );
        }
        EventKind::MoveFailed(_) => {
            "The instance could not move to another host. It stays on its own, with its disk."
        }
        EventKind::Lost => {
            "The host of this instance has failed for good, and the disk with it. The instance costs \
             nothing. Create it again under its name and with its settings, from a backup or with an empty \
             disk, or delete it."
        }
        EventKind::Recreated => "The instance is being created again, with an empty disk.",
        EventKind::RecreatedFrom(at) => {
            let at = at.to_rfc3339();
            return format!("The instance is being created again, with its backup of {at}.");
        }
        EventKind::Volume(_, what) => return kept_message::<OfVolume>(what),
        EventKind::Snapshot(_, _, what) => return kept_message::<OfSnapshot>(what),
        EventKind::Restoring(progress) => {
            return format!("The disk is being restored: {progress}.");
        }
        EventKind::Restored(name) => {
            return format!("The disk is that of the snapshot {name}.");
        }
        EventKind::RestoreFailed(_) => {
            "The restore failed. Look at the disk before you use it; the snapshot stays."
        }
        EventKind::PlanSet(plan) => return format!("Snapshots are taken {plan}."),
        EventKind::PlanRemoved => "No more snapshots are taken by a plan. Those that it took stay.",
        EventKind::PlanFailed(why) => {
            return format!(
                "The plan was due and took no snapshot: {why}. It tries again when it is due next."
            );
        }
        EventKind::Backup(what) => return backup_message(what),
        EventKind::VolumeAttached {
            name,
            path,
            read_only,
            ..
        } => {
            let how = if *read_only { ", read-only" } else { "" };
            return format!("The instance has the volume {name} at {path}{how}.");
        }
        EventKind::VolumeDetached { name, .. } => {
            return format!("The instance does not have the volume {name} any more.");
        }
        EventKind::Forgotten => "The operator removed the instance from the books.",
        EventKind::BillCorrected { nano_usd, reason } => return bill_corrected(*nano_usd, reason),
    };
    text.to_owned()
}

fn bill_corrected(nano_usd: i128, reason: &str) -> String {
    let amount = usd(nano_usd);
    format!("The operator corrected the bill by {amount} USD: {reason}")
}

/// The words for the owner of a volume or a snapshot.
fn kept_message<K: KeptKind>(what: &KeptEvent) -> String {
    let word = K::WORD;
    match what {
        KeptEvent::Created => format!("The {word} was requested and is being made."),
        KeptEvent::Planned => format!("The plan requested the {word}, which is being made."),
        KeptEvent::Ready => format!("The {word} is ready."),
        KeptEvent::Failed(failure, _) => format!("{} It costs nothing.", K::reason(*failure)),
        KeptEvent::Renamed => format!("The {word} was renamed."),
        KeptEvent::Shared(user) => format!("{user} can read the {word}."),
        KeptEvent::Unshared(user) => format!("{user} cannot attach the {word} any more."),
        KeptEvent::Left(user) => format!("{user} does not read the {word} any more."),
        KeptEvent::Deleted => format!("The {word} was deleted with its data."),
        KeptEvent::Retired => format!("The plan deleted the {word}, because it keeps newer ones."),
        KeptEvent::BillCorrected { nano_usd, reason } => bill_corrected(*nano_usd, reason),
        KeptEvent::Backup(what) => backup_message(what),
        KeptEvent::RecreatedFrom(at) => format!(
            "The {word} is made again from its backup of {}.",
            at.to_rfc3339()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::message;
    use wharf_domain::event::EventKind;

    #[test]
    fn reasons_of_engines_stay_with_the_operator() {
        let why = || "dial unix /run/engine.sock".to_owned();
        let refused = EventKind::ResizeRefused {
            field: None,
            message: why(),
        };
        let with_reasons = [
            EventKind::Failed(why()),
            EventKind::Died(why()),
            EventKind::RestartFailed(why()),
            refused,
        ];
        for what in with_reasons {
            let text = message(&what);
            assert!(!text.contains("engine.sock") && text.len() > 20, "{text}");
        }
    }
}
