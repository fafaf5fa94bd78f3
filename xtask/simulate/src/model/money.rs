//! An independent ledger: the price of each instance by its state and size, summed while time passes.

use super::kept::{All, Watched};
use super::{Look, Model, Wrong, check, failed};
use std::collections::{BTreeMap, BTreeSet};
use wharf_db::Read as _;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::KeptStatus;
use wharf_domain::ledger::BillCorrection;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_instances::costs::costs;

/// Milliseconds in an hour.
const HOUR: u128 = 3_600_000;

/// The meter of one instance.
#[derive(Debug, Clone)]
pub struct Meter {
    pub owner: UserId,
    /// Nano-USD in an hour from a time on, in order.
    prices: Vec<(Timestamp, u128)>,
    /// The number of events, and the time of the last one. Time does not run backwards within one instance, even if
    /// the clock of the machine was wrong during a boot.
    events: u32,
    last_event: Timestamp,
    incarnation: u64,
    /// It moves. A copy on another node has an incarnation of its own.
    moves: bool,
    /// Nano-USD that must not be billed.
    free: i128,
    /// Nano-USD that stay on the bill: those of the time before the instance was lost.
    kept: i128,
    /// The latest time so far: a boot with a wrong clock sets Wharf's back.
    latest: Timestamp,
}

impl Meter {
    fn new(owner: UserId, incarnation: u64, now: Timestamp) -> Self {
        Self {
            owner,
            prices: Vec::new(),
            events: 0,
            last_event: now,
            incarnation,
            moves: false,
            free: 0,
            kept: 0,
            latest: now,
        }
    }

    fn read(&mut self, price: u128, events: u32, now: Timestamp) {
        self.latest = self.latest.max(now);
        if events > self.events {
            self.last_event = self.last_event.max(now);
            self.events = events;
        }
        if self.prices.last().is_none_or(|(_, last)| *last != price) {
            self.prices.push((self.last_event, price));
        }
    }

    /// Nano-USD until a time.
    fn sum(&self, now: Timestamp) -> i128 {
        let ends = self
            .prices
            .iter()
            .skip(1)
            .map(|(at, _)| (*at).min(now))
            .chain([now]);
        let parts = self.prices.iter().zip(ends);
        let sum: u128 = parts
            .map(|((at, price), end)| price * u128::from(end.millis_since(*at)))
            .sum();
        i128::try_from(sum / HOUR).unwrap_or(i128::MAX)
    }
}

/// The price of an hour, by the words of the specification: everything while the instance is to run, the disk while
/// it is stopped, nothing once it is deleted or has failed.
fn price(row: &Instance) -> u128 {
    let (size, rates) = (row.size, row.rates);
    let part = |rate: u64, units: usize| u128::from(rate) * units as u128;
    let disk = part(rates.disk.0, size.disk_size_gib as usize);
    let compute = part(rates.vcpu.0, size.n_vcpus as usize)
        + part(rates.mem.0, size.mem_gib as usize)
        + part(rates.gpu.0, row.gpus.len());
    match row.state() {
        InstanceState::Provisioning | InstanceState::Running => compute + disk,
        InstanceState::ShutOff | InstanceState::Exited => disk,
        InstanceState::Error | InstanceState::Deleted => 0,
    }
}

/// Reads the meters of volumes or snapshots: their size while the specification bills them.
fn read_kept<K: Watched>(meters: &mut BTreeMap<InstanceId, Meter>, all: &All<K>, now: Timestamp) {
    for (id, known) in all {
        let row = &known.row;
        let meter = meters.entry((*id).into());
        let meter = meter.or_insert_with(|| Meter::new(row.owner, 0, now));
        let is_billed = match row.status() {
            KeptStatus::Ready => true,
            KeptStatus::Creating => K::BILLED_AT_ONCE,
            KeptStatus::Error | KeptStatus::Deleting => false,
        };
        let price = u128::from(row.rate.0) * u128::from(row.size_gib);
        meter.read(if is_billed { price } else { 0 }, row.events, now);
    }
}

impl Model {
    /// Reads the meters, and compares them with the bills.
    pub(super) fn check_money(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let now = look.app.clock().now();
        for (id, known) in &self.instances {
            let row = &known.row;
            let meter = self
                .meters
                .entry(*id)
                .or_insert_with(|| Meter::new(row.owner, row.incarnation, now));
            let is_raised = row.incarnation > meter.incarnation && !meter.moves;
            if is_raised && known.claim.is_some() && !row.provisioned {
                // Something outside held what the instance needs. Nothing is billed until it has something else.
                // Each sum is rounded, so that a difference may be larger by one.
                meter.free = meter.sum(now) - meter.kept - i128::from(meter.kept > 0);
            }
            if known.claim.is_none() {
                meter.kept = meter.sum(now) - meter.free;
            }
            meter.incarnation = row.incarnation;
            meter.moves = known.moving.is_some();
            meter.read(price(row), row.events, now);
        }
        read_kept(&mut self.meters, &self.volumes, now);
        read_kept(&mut self.meters, &self.snapshots, now);
        for (id, meter) in &mut self.meters {
            let is_kept = self.volumes.contains_key(&(*id).into())
                || self.snapshots.contains_key(&(*id).into());
            if !self.instances.contains_key(id) && !is_kept {
                let events = meter.events;
                meter.read(0, events + 1, now);
            }
        }
        let owners: BTreeSet<_> = self.meters.values().map(|meter| meter.owner).collect();
        for owner in owners {
            let bill = look.app.db().read(|rows| {
                let mut bill = Vec::new();
                for (id, cost) in costs(rows, owner, Timestamp(i64::MIN), now)? {
                    let off = rows.corrections(id)?;
                    let sum = |one: &BillCorrection| one.nano_usd;
                    let all: i128 = off.iter().map(sum).sum();
                    // A bill has what was before its end.
                    let before: i128 = off.iter().filter(|one| one.at < now).map(sum).sum();
                    bill.push((id, cost.total().nano_usd() - before, all));
                }
                Ok(bill)
            });
            for (id, billed, off) in bill.map_err(|error| failed(&error))? {
                let Some(meter) = self.meters.get(&id) else {
                    return Err(format!("{id} is on a bill, and never was"));
                };
                let sum = meter.sum(now);
                check(billed == sum, || {
                    format!(
                        "{id}: the bill says {billed} nano-USD without corrections, and the model {sum}"
                    )
                })?;
                // Time in which something outside held what the instance needs is not billed, and no more than that.
                let most = meter.sum(meter.latest);
                check((-most..=-meter.free).contains(&off), || {
                    format!("{id}: a correction of {off} of {sum}")
                })?;
            }
        }
        Ok(())
    }
}
