//! The bill of a user, and corrections of it.

use super::{Operator, no_instance};
use serde::{Deserialize, Serialize};
use wharf_db::{CORRECTIONS, Changes, Read as _, Rows as _, SNAPSHOTS, VOLUMES, View};
use wharf_domain::audit::Origin;
use wharf_domain::capacity::Size;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, SnapshotId, VolumeId};
use wharf_domain::kept::KeptEvent;
use wharf_domain::ledger::BillCorrection;
use wharf_domain::time::{Timestamp, rfc3339};
use wharf_ground::audit::record;
use wharf_ground::users::user_named;
use wharf_instances::Selector;
use wharf_instances::costs::{CorrectionLine, costs};

/// The longest reason of a correction in bytes.
const MAX_REASON: usize = 500;

/// The bill of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    pub lines: Vec<BillLine>,
    /// The end of its time span, if the requested one is in the future.
    #[serde(with = "rfc3339::option")]
    pub cut_at: Option<Timestamp>,
}

/// The cost of one instance or volume in a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillLine {
    /// UUID of the instance or volume, which may be deleted.
    pub uuid: String,
    /// The last name; `None` if an earlier version purged the instance, and so is its flavor, which a volume has
    /// not.
    pub name: Option<String>,
    pub flavor: Option<String>,
    pub size: Option<Size>,
    /// Cost in nano-USD, corrections included.
    pub nano_usd: i128,
    /// The corrections that are known one by one.
    pub corrections: Vec<CorrectionLine>,
}

impl Operator<'_> {
    /// Returns the cost of each of a user's instances in `[from, to)`, and until now at most. Instances
    /// without cost and corrections are left out.
    pub fn bill(&self, email: &str, from: Timestamp, to: Option<Timestamp>) -> Result<Bill, Error> {
        let now = self.clock.now();
        let cut_at = to.is_some_and(|to| to > now).then_some(now);
        let to = to.filter(|to| *to < now).unwrap_or(now);
        if from > to {
            let message = format!("must not be after {}, the end of the bill", to.to_rfc3339());
            return Err(FieldErrors::one("from", message).into());
        }
        self.db.read(|rows| {
            let user = user_named(rows, "email", email)?;
            let mut lines = Vec::new();
            for (id, cost) in costs(rows, user, from, to)? {
                let nano_usd = cost.total().nano_usd();
                if nano_usd != 0 || !cost.corrections.is_empty() {
                    let known = rows.billed_as(id)?;
                    lines.push(BillLine {
                        uuid: id.to_string(),
                        name: known.as_ref().and_then(|known| known.name.clone()),
                        size: known.as_ref().map(|known| known.size),
                        flavor: known.and_then(|known| known.flavor),
                        nano_usd,
                        corrections: cost.corrections,
                    });
                }
            }
            Ok(Bill { lines, cut_at })
        })
    }

    /// Adds an amount in nano-USD to the bill of an instance, now. A UUID finds deleted instances too.
    pub async fn correct_bill(
        &self,
        selector: &Selector,
        nano_usd: i128,
        reason: &str,
    ) -> Result<InstanceId, Error> {
        let reason = reason.trim().to_owned();
        if reason.is_empty() || reason.len() > MAX_REASON || reason.chars().any(char::is_control) {
            let message = format!("must be one line of 1 to {MAX_REASON} bytes");
            return Err(FieldErrors::one("reason", message).into());
        }
        let (selector, why) = (selector.clone(), reason.clone());
        let corrected = self
            .db
            .write_essential(move |view| {
                let (id, changes) = decide(view, &selector, nano_usd, &why)?;
                let owner = view.rows.ledger(id)?.first().map(|entry| entry.owner);
                let (origin, subject) = (Origin::operator(), id.to_string());
                let result = format!("{nano_usd} nano-USD");
                let audited = record(view, &origin, "bill.correct", owner, &subject, &result);
                Ok((id, changes.with(audited)))
            })
            .await?;
        tracing::warn!(instance = %corrected, nano_usd, reason, "the operator corrected a bill");
        Ok(corrected)
    }
}

fn decide(
    view: &View<'_>,
    selector: &Selector,
    nano_usd: i128,
    reason: &str,
) -> Result<(InstanceId, Changes), Error> {
    let unknown = || no_instance(selector);
    let id = match selector {
        Selector::Id(id) => *id,
        Selector::Name(name) => view.rows.id_of_name(name)?.ok_or_else(unknown)?,
    };
    let entries = view.rows.ledger(id)?;
    let owner = entries.first().ok_or_else(unknown)?.owner;
    let number = view.rows.corrections(id)?.len();
    let correction = BillCorrection {
        at: view.now,
        owner,
        nano_usd,
        reason: reason.to_owned(),
    };
    let number = u32::try_from(number).map_err(Error::internal)?;
    let changes = Changes::none().put(&CORRECTIONS, (id, number), correction);
    let what = EventKind::BillCorrected {
        nano_usd,
        reason: reason.to_owned(),
    };
    let of_kept = KeptEvent::BillCorrected {
        nano_usd,
        reason: reason.to_owned(),
    };
    if let Some(volume) = view.rows.get(&VOLUMES, VolumeId(id.0))? {
        return Ok((id, changes.record_kept(volume, view.now, of_kept)));
    }
    if let Some(snapshot) = view.rows.get(&SNAPSHOTS, SnapshotId(id.0))? {
        return Ok((id, changes.record_kept(snapshot, view.now, of_kept)));
    }
    if let Some(instance) = view.rows.instance(id)? {
        return Ok((id, changes.record(instance, view.now, what)));
    }
    // The events of what is purged may have been removed; the correction itself remains.
    let mut events = view.rows.event_rows(id)?;
    let (Ok(number), Some(mut row)) = (u32::try_from(events.len()), events.pop()) else {
        return Ok((id, changes));
    };
    row.event.at = view.now.max(row.event.at);
    row.event.what = match row.event.what {
        EventKind::Volume(status, _) => EventKind::Volume(status, of_kept),
        EventKind::Snapshot(instance, status, _) => EventKind::Snapshot(instance, status, of_kept),
        _ => what,
    };
    row.initiator = row.event.what.usual_initiator();
    Ok((id, changes.append_event(number, row)))
}
