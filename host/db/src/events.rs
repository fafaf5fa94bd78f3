//! The events of each owner in one sequence without gaps, whatever their instances. Its rows are an
//! index: the events name their places themselves.

use super::draft::Draft;
use super::findings::{Findings, Fix};
use super::read::Read;
use super::rows::EventRow;
use super::table::Table;
use super::tables as t;
use super::tree::{ReadRows, Rows as _};
use std::collections::BTreeMap;
use wharf_domain::error::Error;
use wharf_domain::event::InstanceEvent;
use wharf_domain::ids::{InstanceId, UserId};

/// The events as they were until format 4.
const UNNUMBERED: Table<InstanceId, u32, InstanceEvent> = Table::bounded(b'i', 2, "", "");

impl Draft<'_> {
    /// Appends an event to its instance, and to the sequence of its owner.
    pub(super) fn append_event(&mut self, number: u32, mut row: EventRow) -> Result<(), Error> {
        let (owner, id) = (row.owner, row.event.instance);
        row.seq = self.last_event(owner)? + 1;
        self.put(&t::OWNER_EVENTS, (owner, row.seq), &(id, number))?;
        self.put(&t::EVENTS, (id, number), &row)?;
        self.woken.events.insert(owner);
        Ok(())
    }

    /// Removes events from the front of an owner's sequence.
    pub(super) fn trim_events(&mut self, owner: UserId, through: u64) -> Result<(), Error> {
        let from = self.trimmed_events(owner)? + 1;
        // The number of the next event follows from the remaining rows.
        let through = through.min(self.last_event(owner)?);
        for seq in from..=through {
            self.remove(&t::OWNER_EVENTS, (owner, seq))?;
        }
        if through >= from {
            self.put(&t::TRIMMED_EVENTS, owner, &through)?;
        }
        Ok(())
    }

    /// Numbers the events of format 4 and of earlier ones in the order of time.
    pub(super) fn number_events(&mut self) -> Result<(), Error> {
        let mut owners = BTreeMap::new();
        for row in self.all(&t::CLOSED)? {
            let (owner, (_, id), _) = row?;
            owners.insert(id, (owner, None));
        }
        for row in self.all(&t::RECORDED)? {
            let (owner, id, ()) = row?;
            owners.insert(id, (owner, None));
        }
        for row in self.all(&t::LEDGER)? {
            let (id, _, entry) = row?;
            owners.insert(id, (entry.owner, None));
        }
        self.each_instance(|i| {
            owners.insert(i.id, (i.owner, Some(i.name.as_str().to_owned())));
        })?;
        let mut order = Vec::new();
        for row in self.all(&UNNUMBERED)? {
            let (id, number, event) = row?;
            order.push((event.at, id, number));
        }
        order.sort_unstable();
        for (_, id, number) in order {
            let Some(event) = self.remove(&UNNUMBERED, (id, number))? else {
                continue;
            };
            // Events without an owner stay for the operator.
            let owner = owners.get(&id).cloned();
            let (owner, name) = owner.unwrap_or((UserId(0), None));
            let initiator = event.what.usual_initiator();
            let row = EventRow {
                event,
                owner,
                seq: 0,
                name,
                initiator,
            };
            self.append_event(number, row)?;
        }
        Ok(())
    }
}

/// Compares the sequences of all owners with the events.
pub(super) fn check(rows: &ReadRows, wrong: &mut Findings) -> Result<(), Error> {
    let mut derived = BTreeMap::new();
    let mut trimmed = BTreeMap::new();
    for row in rows.all(&t::TRIMMED_EVENTS)? {
        let (owner, (), through) = row?;
        trimmed.insert(owner, through);
    }
    for row in rows.all(&t::EVENTS)? {
        let (id, number, row) = row?;
        if row.event.instance != id {
            wrong.push(format!("{id}: its event {number} is of another instance"));
        }
        if row.seq <= trimmed.get(&row.owner).copied().unwrap_or_default() {
            continue;
        }
        if let Some((other, _)) = derived.insert((row.owner, row.seq), (id, number)) {
            let (owner, seq) = (row.owner.0, row.seq);
            wrong.push(format!(
                "{id} and {other} both have event {seq} of user {owner}"
            ));
        }
    }
    let mut before: Option<(UserId, u64)> = None;
    for (owner, seq) in derived.keys() {
        let last = before.filter(|before| before.0 == *owner).map(|b| b.1);
        let last = last.or_else(|| trimmed.get(owner).copied());
        if *seq != last.unwrap_or_default() + 1 {
            wrong.push(format!("user {}: no event before {seq}", owner.0));
        }
        before = Some((*owner, *seq));
    }
    let stored = rows.all(&t::OWNER_EVENTS)?;
    let stored = stored.map(|row| row.map(|(owner, seq, place)| ((owner, seq), place)));
    let stored: BTreeMap<_, _> = stored.collect::<Result<_, _>>()?;
    for (key, place) in &derived {
        if stored.get(key) != Some(place) {
            let fix = Fix::put(t::OWNER_EVENTS.key(&key.0, &key.1), place)?;
            wrong.fixable(format!("owner_events lacks {key:?} of {place:?}"), fix);
        }
    }
    for (key, place) in &stored {
        if !derived.contains_key(key) {
            let fix = Fix::remove(t::OWNER_EVENTS.key(&key.0, &key.1));
            let text = format!("owner_events has {key:?} of {place:?}, which no row says");
            wrong.fixable(text, fix);
        }
    }
    Ok(())
}
