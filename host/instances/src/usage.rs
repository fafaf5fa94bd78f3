//! The usage of a user in money: costs by month and instance, and the rates of now.

use super::App;
use super::costs::{CorrectionLine, costs};
use std::collections::BTreeMap;
use wharf_db::{BilledAs, BilledKind, KeptTable, Read as _, Rows};
use wharf_domain::capacity::Size;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::InstanceId;
use wharf_domain::kept::KeptStatus;
use wharf_domain::month::Month;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::OfVolume;
use wharf_ground::caller::Caller;

/// The costs of a user in a time span. Amounts are in nano-USD.
#[derive(Debug)]
pub struct Usage {
    pub from: Timestamp,
    pub to: Timestamp,
    /// The sum of the instances, volumes and snapshots.
    pub nano_usd: i128,
    /// The cost of an hour, as the instances, volumes and snapshots are now.
    pub hourly: u128,
    pub months: BTreeMap<Month, i128>,
    /// Oldest first. Instances without cost and corrections are left out.
    pub instances: Vec<InstanceUsage>,
    /// Oldest first. Volumes without cost and corrections are left out.
    pub volumes: Vec<KeptUsage>,
    /// As volumes.
    pub snapshots: Vec<KeptUsage>,
}

/// The costs of one volume or snapshot.
#[derive(Debug)]
pub struct KeptUsage {
    /// In the form of the ledger.
    pub id: InstanceId,
    pub name: String,
    pub size_gib: u32,
    /// The instance of a snapshot whose events are kept.
    pub instance: Option<InstanceId>,
    /// `None` if it is deleted.
    pub status: Option<KeptStatus>,
    pub nano_usd: i128,
    pub hourly: u128,
    /// Each month is rounded down by itself.
    pub months: Vec<(Month, i128)>,
    pub corrections: Vec<CorrectionLine>,
}

/// The costs of one instance.
#[derive(Debug)]
pub struct InstanceUsage {
    pub id: InstanceId,
    /// `None` if an earlier version purged the instance, and so is its flavor.
    pub name: Option<String>,
    pub flavor: Option<String>,
    pub size: Option<Size>,
    pub state: InstanceState,
    pub nano_usd: i128,
    pub hourly: u128,
    /// Each month is rounded down by itself.
    pub months: Vec<(Month, i128)>,
    pub corrections: Vec<CorrectionLine>,
}

impl App {
    /// Returns the caller's costs in `[from, to)`, and until now at most; without `from`, since the start
    /// of this month. It reads the ledgers of all of the caller's instances, so it may take long.
    pub fn usage_in(
        &self,
        caller: &Caller,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<Usage, Error> {
        let now = self.clock.now();
        let to = to.filter(|to| *to < now).unwrap_or(now);
        let from = from.unwrap_or_else(|| Month::of(to).start());
        if from > to {
            let message = format!("must not be after {}", to.to_rfc3339());
            return Err(FieldErrors::one("from", message).into());
        }
        let mut usage = Usage {
            from,
            to,
            nano_usd: 0,
            hourly: 0,
            months: BTreeMap::new(),
            instances: Vec::new(),
            volumes: Vec::new(),
            snapshots: Vec::new(),
        };
        self.db.read(|rows| {
            for (id, cost) in costs(rows, caller.user, from, to)? {
                let total = cost.total().nano_usd();
                if total == 0 && cost.hourly == 0 && cost.corrections.is_empty() {
                    continue;
                }
                let months = cost.months.into_iter();
                let months: Vec<_> = months.map(|(m, cost)| (m, cost.nano_usd())).collect();
                for (month, nano_usd) in &months {
                    *usage.months.entry(*month).or_default() += nano_usd;
                }
                usage.nano_usd += total;
                usage.hourly += cost.hourly;
                let state = rows.instance(id)?.map(|instance| instance.state());
                let known = rows.billed_as(id)?;
                let kind = known.as_ref().map(BilledAs::kind);
                let (kept, status, of) = match kind {
                    Some(BilledKind::Volume) => {
                        (&mut usage.volumes, status::<OfVolume>(rows, id)?, None)
                    }
                    Some(BilledKind::Snapshot) => (
                        &mut usage.snapshots,
                        status::<OfSnapshot>(rows, id)?,
                        instance_of(rows, id)?,
                    ),
                    _ => {
                        usage.instances.push(InstanceUsage {
                            id,
                            state: state.unwrap_or(InstanceState::Deleted),
                            size: known.as_ref().map(|known| known.size),
                            name: known.as_ref().and_then(|known| known.name.clone()),
                            flavor: known.and_then(|known| known.flavor),
                            nano_usd: total,
                            hourly: cost.hourly,
                            months,
                            corrections: cost.corrections,
                        });
                        continue;
                    }
                };
                if let Some(known) = known {
                    kept.push(KeptUsage {
                        id,
                        name: known.name.unwrap_or_default(),
                        size_gib: known.size.disk_size_gib,
                        instance: of,
                        status,
                        nano_usd: total,
                        hourly: cost.hourly,
                        months,
                        corrections: cost.corrections,
                    });
                }
            }
            Ok(())
        })?;
        Ok(usage)
    }
}

/// The state of a volume or a snapshot; `None` if it is deleted.
fn status<K: KeptTable>(rows: &impl Rows, id: InstanceId) -> Result<Option<KeptStatus>, Error> {
    let row = rows.get(K::ROWS, K::Id::from(id))?;
    Ok(row.filter(|row| !row.deleted).map(|row| row.status()))
}

/// The instance of a snapshot, as its last event tells it.
fn instance_of(rows: &impl Rows, id: InstanceId) -> Result<Option<InstanceId>, Error> {
    let last = rows.event_rows(id)?.pop();
    Ok(last.and_then(|row| match row.event.what {
        EventKind::Snapshot(instance, ..) => Some(instance),
        _ => None,
    }))
}
