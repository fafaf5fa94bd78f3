//! Applies the changes of a use case to the rows.

use super::changes::{Change, Changes};
use super::codec::internal;
use super::draft::Draft;
use super::projection::Projected;
use super::read::Read;
use super::rows::{BilledAs, OwnerRow};
use super::table::{Table, TableRow};
use super::tables as t;
use super::tree::Rows;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::ledger::LedgerCost;
use wharf_domain::month::Month;

impl Draft<'_> {
    /// Applies one use case's changes to the rows and to the projection.
    pub(super) fn apply(
        &mut self,
        changes: Changes,
        projected: &mut Projected,
    ) -> Result<(), Error> {
        for change in changes.0 {
            self.apply_one(change, projected)?;
            let followed = std::mem::take(&mut self.followed);
            followed.into_iter().for_each(|row| projected.follow(row));
        }
        Ok(())
    }

    fn apply_one(&mut self, change: Change, projected: &mut Projected) -> Result<(), Error> {
        match change {
            Change::Instance(instance) => self.put_instance(&instance, projected),
            Change::DropInstance(id) => self.drop_instance(id, projected),
            Change::Lost(id, lost) => self.note_lost(id, lost, projected),
            Change::Event(number, row) => self.append_event(number, *row),
            Change::Entry(number, entry) => {
                if number == 0 {
                    self.put(&t::RECORDED, (entry.owner, entry.instance), &())?;
                }
                self.put(&t::LEDGER, (entry.instance, number), &entry)
                    .map(drop)
            }
            Change::CloseLedger(owner, id, months) => self.close_ledger(owner, id, &months),
            Change::List(owner) => self.count_list(owner, 0),
            Change::TrimEvents(owner, through) => self.trim_events(owner, through),
            Change::DropEvents(id) => self.drop_events(id),
            Change::Audit(record) => self.append_audit(&record),
            Change::DropAudit(number) => self.drop_audit(number),
            Change::Row(row) => row.apply(self),
        }
    }

    fn close_ledger(
        &mut self,
        owner: UserId,
        id: InstanceId,
        months: &[(Month, LedgerCost)],
    ) -> Result<(), Error> {
        for (month, cost) in months {
            self.put(&t::CLOSED, (owner, (month.0, id)), cost)?;
        }
        match months {
            [] => drop(self.remove(&t::BILLED_AS, id)?),
            _ => self.keep_billed_as(id)?,
        }
        self.remove_under(&t::LEDGER, id)?;
        self.remove_under(&t::CORRECTIONS, id)
    }

    fn drop_events(&mut self, id: InstanceId) -> Result<(), Error> {
        if self.keys_under(&t::LEDGER, &id)?.next().is_some() {
            self.keep_billed_as(id)?;
        }
        self.remove_under(&t::EVENTS, id)
    }

    /// Keeps what only the events have of an instance that an earlier version purged.
    fn keep_billed_as(&mut self, id: InstanceId) -> Result<(), Error> {
        if let Some(known) = self.billed_as(id)? {
            self.put(&t::BILLED_AS, id, &known)?;
        }
        Ok(())
    }

    fn remove_under<V: TableRow>(
        &mut self,
        table: &Table<InstanceId, u32, V>,
        id: InstanceId,
    ) -> Result<(), Error> {
        let numbers: Vec<u32> = self.keys_under(table, &id)?.collect::<Result<_, _>>()?;
        for number in numbers {
            self.remove(table, (id, number))?;
        }
        Ok(())
    }

    fn put_instance(&mut self, new: &Instance, projected: &mut Projected) -> Result<(), Error> {
        let old = self.put(&t::INSTANCES, new.id, new)?;
        // A use case reads the row that it changes.
        if new.version != old.as_ref().map_or(0, |old| old.version) + 1 {
            return Err(internal(format!(
                "{} was changed without being read",
                new.id
            )));
        }
        let before = old.as_ref().map_or(0, |old| old.wan_ports.len());
        projected.count_ports(new.owner, before, new.wan_ports.len());
        self.count_change(old.as_ref(), Some(new))
    }

    fn drop_instance(&mut self, id: InstanceId, projected: &mut Projected) -> Result<(), Error> {
        let lost = self.is_lost(id)?;
        let Some(old) = self.remove(&t::INSTANCES, id)? else {
            return Ok(());
        };
        self.put(&t::BILLED_AS, id, &BilledAs::from(&old))?;
        self.remove(&t::CLAIMS, (&*old.node.0, id))?;
        if !lost {
            projected.count_ports(old.owner, old.wan_ports.len(), 0);
        }
        self.count_change(Some(&old), None)
    }

    /// The open ports of a lost VM do not count.
    fn note_lost(
        &mut self,
        id: InstanceId,
        lost: bool,
        projected: &mut Projected,
    ) -> Result<(), Error> {
        let before = if lost {
            self.put(&t::LOST, id, &())?
        } else {
            self.remove(&t::LOST, id)?
        };
        if let Some(row) = self.get(&t::INSTANCES, id)?
            && before.is_some() != lost
        {
            let ports = row.wan_ports.len();
            let (before, after) = if lost { (ports, 0) } else { (0, ports) };
            projected.count_ports(row.owner, before, after);
        }
        Ok(())
    }

    /// Counts a change of an owner's list, which a deleted instance is not in.
    fn count_change(
        &mut self,
        old: Option<&Instance>,
        new: Option<&Instance>,
    ) -> Result<(), Error> {
        let is_listed = |instance: &&Instance| instance.intent != Intent::Delete;
        if let Some(listed) = new.filter(is_listed).or(old.filter(is_listed)) {
            self.count_list(listed.owner, listed.seq)?;
        }
        Ok(())
    }

    fn count_list(&mut self, owner: UserId, seq: u64) -> Result<(), Error> {
        let counters = self.get(&t::OWNERS, owner)?.unwrap_or_default();
        let counters = OwnerRow {
            version: counters.version + 1,
            last_seq: counters.last_seq.max(seq),
        };
        self.put(&t::OWNERS, owner, &counters).map(drop)
    }
}
