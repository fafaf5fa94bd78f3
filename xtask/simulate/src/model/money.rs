//! An independent ledger: the price of each instance by its state and size, summed while time passes.

use super::{Look, Model, Wrong, check, failed};
use std::collections::BTreeSet;
use wharf_db::Read as _;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_instances::costs::costs;

/// Milliseconds in an hour.
const HOUR: u128 = 3_600_000;

/// The meter of one instance.
#[derive(Debug, Clone)]
pub struct Meter {
    owner: UserId,
    /// Nano-USD, multiplied by the milliseconds of an hour.
    sum: u128,
    /// Nano-USD in an hour since `since`.
    rate: u128,
    since: Timestamp,
    /// The part of `sum` that must not be billed.
    free: u128,
    incarnation: u64,
}

impl Meter {
    fn pass(&mut self, now: Timestamp) {
        self.sum += self.rate * u128::from(now.millis_since(self.since));
        self.since = self.since.max(now);
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

impl Model {
    /// Reads the meters, and compares them with the bills.
    pub(super) fn check_money(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let now = look.app.clock().now();
        for (id, known) in &self.instances {
            let meter = self.meters.entry(*id).or_insert_with(|| Meter {
                owner: known.row.owner,
                sum: 0,
                rate: 0,
                since: now,
                free: 0,
                incarnation: known.row.incarnation,
            });
            meter.pass(now);
            meter.rate = price(&known.row);
            if known.row.incarnation > meter.incarnation
                && known.claim.is_some()
                && !known.row.provisioned
            {
                // Something outside held what the instance needs. Nothing is billed until it has something else.
                meter.free = meter.sum;
            }
            meter.incarnation = known.row.incarnation;
        }
        for (id, meter) in &mut self.meters {
            if !self.instances.contains_key(id) {
                meter.pass(now);
                meter.rate = 0;
            }
        }
        let owners: BTreeSet<_> = self.meters.values().map(|meter| meter.owner).collect();
        for owner in owners {
            let bill = look.app.db().read(|rows| {
                let mut bill = Vec::new();
                for (id, cost) in costs(rows, owner, Timestamp(i64::MIN), now)? {
                    let off: i128 = rows.corrections(id)?.iter().map(|one| one.nano_usd).sum();
                    bill.push((id, cost.total().nano_usd(), off));
                }
                Ok(bill)
            });
            for (id, billed, off) in bill.map_err(|error| failed(&error))? {
                let Some(meter) = self.meters.get(&id) else {
                    return Err(format!("{id} is on a bill, and never was"));
                };
                let sum = i128::try_from(meter.sum / HOUR).unwrap_or(i128::MAX);
                check(billed == sum + off, || {
                    format!(
                        "{id}: the bill says {billed} nano-USD with corrections of {off}, and the model {sum}"
                    )
                })?;
                // Time in which something outside held what the instance needs is not billed, and no more than that.
                let free = i128::try_from(meter.free / HOUR).unwrap_or(i128::MAX);
                check((-sum..=-free).contains(&off), || {
                    format!("{id}: a correction of {off} of {sum}")
                })?;
            }
        }
        Ok(())
    }
}
