//! The words for events.

use wharf_domain::backup::BackupEvent;
use wharf_domain::event::EventKind;
use wharf_domain::kept::KeptEvent;
use wharf_domain::money::usd;
use wharf_domain::placement::Allocation;
use wharf_domain::shortage::Shortage;

/// The kind of an event in the event log, and its reason.
pub fn describe(what: &EventKind) -> (&'static str, Option<String>) {
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
        EventKind::BillCorrected { nano_usd, reason } => bill_corrected(*nano_usd, reason),
        EventKind::Suspended(reason) => ("suspended", Some(reason.clone())),
        EventKind::Resumed => ("resumed", None),
        EventKind::HostKeyChanged(keys) => ("host-key-changed", Some(keys.clone())),
        EventKind::NodeDrained => ("node-drained", None),
        EventKind::Moving => ("moving", None),
        EventKind::Moved(addresses) => ("moved", Some(addresses.to_string())),
        EventKind::MoveFailed(why) => ("move-failed", Some(why.clone())),
        EventKind::Lost => ("lost", None),
        EventKind::Recreated => ("recreated", None),
        EventKind::RecreatedFrom(at) => ("recreated", Some(at.to_rfc3339())),
        EventKind::AllocationLost(lost, addresses) => {
            let kind = match addresses {
                Some(_) => "reallocated",
                None => "failed",
            };
            (kind, Some(held(lost)))
        }
        EventKind::DiskGrowing(progress) => ("disk-growing", Some(progress.clone())),
        EventKind::ShareCreated(what) => ("share-created", Some(what.clone())),
        EventKind::ShareChanged(what) => ("share-changed", Some(what.clone())),
        EventKind::ShareRemoved(what) => ("share-removed", Some(what.clone())),
        EventKind::PageVisited { page, visitor } => {
            ("page-visited", Some(format!("{page} by {visitor}")))
        }
        EventKind::Volume(_, what) => describe_volume(what),
        EventKind::Snapshot(_, _, what) => describe_snapshot(what),
        EventKind::Restoring(progress) => ("restoring", Some(progress.clone())),
        EventKind::Restored(name) => ("restored", Some(name.clone())),
        EventKind::RestoreFailed(why) => ("restore-failed", Some(why.clone())),
        EventKind::PlanSet(plan) => ("snapshot-plan-set", Some(plan.to_string())),
        EventKind::PlanRemoved => ("snapshot-plan-removed", None),
        EventKind::PlanFailed(why) => ("snapshot-plan-failed", Some(why.clone())),
        EventKind::Backup(what) => describe_backup(what),
        EventKind::VolumeAttached {
            name,
            path,
            read_only,
            ..
        } => {
            let how = if *read_only { ", read-only" } else { "" };
            ("volume-attached", Some(format!("{name} at {path}{how}")))
        }
        EventKind::VolumeDetached { name, .. } => ("volume-detached", Some(name.clone())),
        EventKind::RestartShort(short) => ("restart-failed", Some(shortages(short))),
        EventKind::ResizeShort(short) => ("resize-refused", Some(shortages(short))),
    }
}

fn describe_volume(what: &KeptEvent) -> (&'static str, Option<String>) {
    match what {
        KeptEvent::Created | KeptEvent::Planned => ("volume-created", None),
        KeptEvent::Ready => ("volume-ready", None),
        KeptEvent::Failed(_, why) => ("volume-failed", Some(why.clone())),
        KeptEvent::Renamed => ("volume-renamed", None),
        KeptEvent::Shared(user) => ("volume-shared", Some(user.clone())),
        KeptEvent::Unshared(user) | KeptEvent::Left(user) => {
            ("volume-unshared", Some(user.clone()))
        }
        KeptEvent::Deleted | KeptEvent::Retired => ("volume-deleted", None),
        KeptEvent::BillCorrected { nano_usd, reason } => bill_corrected(*nano_usd, reason),
        KeptEvent::Backup(what) => describe_backup(what),
        KeptEvent::RecreatedFrom(at) => ("volume-recreated", Some(at.to_rfc3339())),
    }
}

fn describe_snapshot(what: &KeptEvent) -> (&'static str, Option<String>) {
    match what {
        KeptEvent::Created => ("snapshot-created", None),
        KeptEvent::Planned => ("snapshot-created", Some("by the plan".to_owned())),
        KeptEvent::Ready => ("snapshot-ready", None),
        KeptEvent::Failed(_, why) => ("snapshot-failed", Some(why.clone())),
        KeptEvent::Deleted => ("snapshot-deleted", None),
        KeptEvent::Retired => ("snapshot-deleted", Some("by the plan".to_owned())),
        // The others are of volumes alone, or alike.
        other => describe_volume(other),
    }
}

fn describe_backup(what: &BackupEvent) -> (&'static str, Option<String>) {
    match what {
        BackupEvent::Created => ("backup-created", None),
        BackupEvent::Planned => ("backup-created", Some("by the plan".to_owned())),
        BackupEvent::Done => ("backup-done", None),
        BackupEvent::Failed(why) => ("backup-failed", Some(why.clone())),
        BackupEvent::PlanSet(plan) => ("backup-plan-set", Some(plan.clone())),
        BackupEvent::PlanRemoved => ("backup-plan-removed", None),
        BackupEvent::PlanFailed(why) => ("backup-plan-failed", Some(why.clone())),
    }
}

/// The words for the owner of the instance.
pub(super) fn backup_message(what: &BackupEvent) -> String {
    let text = match what {
        BackupEvent::Created => "A backup was requested and is being made.",
        BackupEvent::Planned => "The plan requested a backup, which is being made.",
        BackupEvent::Done => "The backup is done.",
        BackupEvent::Failed(why) => {
            let why = why.trim_end_matches('.');
            return format!("The backup failed: {why}.");
        }
        BackupEvent::PlanSet(plan) => return format!("Backups are made {plan}."),
        BackupEvent::PlanRemoved => "No more backups are made by a plan. Those that it made stay.",
        BackupEvent::PlanFailed(why) => {
            return format!(
                "The plan was due and made no backup: {why}. It tries again when it is due next."
            );
        }
    };
    text.to_owned()
}

fn bill_corrected(nano_usd: i128, reason: &str) -> (&'static str, Option<String>) {
    let amount = usd(nano_usd);
    ("bill-corrected", Some(format!("{amount} USD: {reason}")))
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
