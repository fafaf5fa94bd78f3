//! Checks the events and the ledger of every instance, volume and snapshot, purged ones included. Numbers have no gaps, time
//! does not run backwards, and the ledger agrees with the events.

use super::findings::Findings;
use super::fsck::Known;
use super::tables::{self as t, KeptTable};
use super::tree::{ReadRows, Rows as _};
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::Error;
use wharf_domain::event::InstanceEvent;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::ledger::LedgerEntry;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;

/// Adds the contradictions of all histories, those of purged instances included.
pub(super) fn check(rows: &ReadRows, known: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let mut ids: BTreeSet<InstanceId> = known.keys().copied().collect();
    let mut others = counts_of::<OfVolume>(rows)?;
    others.extend(counts_of::<OfSnapshot>(rows)?);
    ids.extend(others.keys());
    for row in rows.all(&t::EVENTS)? {
        ids.insert(row?.0);
    }
    for row in rows.all(&t::LEDGER)? {
        ids.insert(row?.0);
    }
    for id in ids {
        let events = rows
            .under(&t::EVENTS, &id)?
            .map(|row| row.map(|(number, row)| (number, row.event)))
            .collect::<Result<Vec<_>, _>>()?;
        let ledger = rows
            .under(&t::LEDGER, &id)?
            .collect::<Result<Vec<_>, _>>()?;
        let kept = known.get(&id).map(Counts::from);
        let kept = kept.or_else(|| others.get(&id).copied());
        check_one(id, kept, &events, &ledger, wrong);
    }
    Ok(())
}

/// The part of a row that its history must agree with.
#[derive(Clone, Copy)]
struct Counts {
    owner: UserId,
    events: u32,
    ledger_entries: u32,
}

impl From<&Instance> for Counts {
    fn from(row: &Instance) -> Self {
        Self {
            owner: row.owner,
            events: row.events,
            ledger_entries: row.ledger_entries,
        }
    }
}

fn counts_of<K: KeptTable>(rows: &ReadRows) -> Result<BTreeMap<InstanceId, Counts>, Error> {
    let rows = rows.all(K::ROWS)?.filter_map(Result::ok);
    let counts = rows.map(|(id, (), row)| {
        let counts = Counts {
            owner: row.owner,
            events: row.events,
            ledger_entries: row.ledger_entries,
        };
        (id.into(), counts)
    });
    Ok(counts.collect())
}

fn check_one(
    id: InstanceId,
    kept: Option<Counts>,
    events: &[(u32, InstanceEvent)],
    ledger: &[(u32, LedgerEntry)],
    wrong: &mut Findings,
) {
    let mut expect = |holds: bool, text: &str| {
        if !holds {
            wrong.push(format!("{id}: {text}"));
        }
    };
    let (last_event, last_entry) = (events.last(), ledger.last());
    if let Some(kept) = kept {
        let counted = |last: Option<u32>| last.map_or(0, |last| last.saturating_add(1));
        let events = counted(last_event.map(|(number, _)| *number));
        expect(events == kept.events, "its last events are missing");
        let entries = counted(last_entry.map(|(number, _)| *number));
        let all = entries == kept.ledger_entries;
        expect(all, "its last ledger entries are missing");
    } else {
        let ended = last_entry.is_none_or(|(_, entry)| {
            let billed = entry.billed;
            !billed.compute && !billed.storage
        });
        expect(ended, "its ledger bills it after its deletion");
    }
    let gapless = |(a, b): (&u32, &u32)| a.checked_add(1) == Some(*b);
    let numbers = events.iter().map(|(number, _)| number);
    let gap = numbers.clone().zip(numbers.skip(1)).all(gapless);
    expect(gap, "its events have a gap");
    let numbers = ledger.iter().map(|(number, _)| number);
    let gap = numbers.clone().zip(numbers.skip(1)).all(gapless);
    expect(gap, "its ledger has a gap");
    let forwards = ledger.is_sorted_by_key(|(_, entry)| entry.at);
    expect(forwards, "its ledger runs backwards");
    let own = |entry: &LedgerEntry| {
        entry.instance == id && kept.is_none_or(|kept| kept.owner == entry.owner)
    };
    let own = ledger.iter().all(|(_, entry)| own(entry));
    expect(own, "its ledger has entries of others");
    // The ledger may have more than the events: corrections. Events have the system's time, and the
    // ledger has Wharf's own.
    let billed = |event: &InstanceEvent| (event.state.billed(), event.size);
    let mut before = None;
    let mut entries = ledger.iter().map(|(_, entry)| (entry.billed, entry.size));
    let all = events.iter().all(|(number, event)| {
        let now = Some(billed(event));
        let changed = before != now && (before.is_some() || *number == 0);
        before = now;
        !changed || entries.any(|entry| Some(entry) == now)
    });
    expect(all, "its ledger lacks an entry that its events say");
}
