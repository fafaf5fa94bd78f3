//! Derives every index again from the instance rows and compares.

use super::apply::{is_pending, names, place};
use super::codec::internal;
use super::read::{Read, Snapshot};
use crate::domain::error::Error;
use crate::domain::ids::InstanceId;
use redb::ReadableTable;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// One line for each contradiction between tables.
pub fn check(rows: &Snapshot) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let mut named = BTreeMap::new();
    let mut owned = BTreeMap::new();
    let mut pending = BTreeSet::new();
    let mut known = BTreeMap::new();
    rows.each_instance(|instance| {
        let id = instance.id.0.as_u128();
        for name in names(Some(&instance)) {
            if let Some(other) = named.insert(name.to_owned(), id) {
                wrong.push(format!(
                    "name {name} belongs to {} and {}",
                    instance.id,
                    hex(other)
                ));
            }
        }
        owned.extend(place(Some(&instance)).map(|key| (key, id)));
        if is_pending(Some(&instance)) {
            pending.insert(id);
        }
        known.insert(id, instance);
    })?;
    compare(
        "names",
        &named,
        &collect(rows.names()?.iter(), |k: &str| k.to_owned(), |v| v)?,
        &mut wrong,
    );
    compare(
        "owned",
        &owned,
        &collect(rows.owned()?.iter(), |k| k, |v| v)?,
        &mut wrong,
    );
    let stored: BTreeSet<u128> = collect(rows.pending_table()?.iter(), |k| k, |()| ())?
        .into_keys()
        .collect();
    if stored != pending {
        wrong.push(format!(
            "pending lists {} instances, {} are",
            stored.len(),
            pending.len()
        ));
    }
    check_claims(rows, &known, &mut wrong)?;
    for (id, instance) in &known {
        let instance_id = InstanceId(Uuid::from_u128(*id));
        let events = rows.events(instance_id)?;
        if events.len() != instance.events as usize {
            wrong.push(format!(
                "{instance_id}: {} events, {} counted",
                events.len(),
                instance.events
            ));
        }
        if events
            .iter()
            .zip(events.iter().skip(1))
            .any(|(a, b)| b.at < a.at)
        {
            wrong.push(format!("{instance_id}: its event log runs backwards"));
        }
        if rows.ledger(instance_id)?.len() != instance.ledger_entries as usize {
            wrong.push(format!("{instance_id}: ledger entries are missing"));
        }
    }
    Ok(wrong)
}

type Known = BTreeMap<u128, crate::domain::instance::Instance>;

fn check_claims(rows: &Snapshot, known: &Known, wrong: &mut Vec<String>) -> Result<(), Error> {
    let mut ports = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    let mut claimed = BTreeSet::new();
    rows.each_claim(|id, claim| {
        claimed.insert(id.0.as_u128());
        let Some(instance) = known.get(&id.0.as_u128()) else {
            wrong.push(format!("{id}: a claim without an instance"));
            return;
        };
        let same = claim.node == instance.node
            && claim.owner == instance.owner
            && claim.ssh_port == instance.ssh_port
            && claim.lan_ipv4 == instance.lan_ipv4
            && claim.public_ipv4 == instance.public_ipv4;
        if !same {
            wrong.push(format!(
                "{id}: its claim is of other addresses than its row"
            ));
        }
        let port = (instance.ssh_host.clone(), claim.ssh_port);
        if let Some(other) = ports.insert(port, id) {
            wrong.push(format!("{id} and {other} have the same SSH port"));
        }
        let address = (claim.node.clone(), claim.lan_ipv4);
        if let Some(other) = addresses.insert(address, id) {
            wrong.push(format!("{id} and {other} have the same LAN address"));
        }
    })?;
    for id in known.keys().filter(|id| !claimed.contains(id)) {
        wrong.push(format!("{}: an instance without a claim", hex(*id)));
    }
    Ok(())
}

fn hex(id: u128) -> InstanceId {
    InstanceId(Uuid::from_u128(id))
}

fn compare<K: Ord + std::fmt::Debug>(
    table: &str,
    derived: &BTreeMap<K, u128>,
    stored: &BTreeMap<K, u128>,
    wrong: &mut Vec<String>,
) {
    for (key, id) in derived {
        if stored.get(key) != Some(id) {
            wrong.push(format!("{table} lacks {key:?} of {}", hex(*id)));
        }
    }
    for (key, id) in stored {
        if !derived.contains_key(key) {
            wrong.push(format!(
                "{table} has {key:?} of {}, which is not so",
                hex(*id)
            ));
        }
    }
}

fn collect<K, V, A: Ord, B>(
    rows: Result<redb::Range<'_, K, V>, redb::StorageError>,
    key: impl Fn(K::SelfType<'_>) -> A,
    value: impl Fn(V::SelfType<'_>) -> B,
) -> Result<BTreeMap<A, B>, Error>
where
    K: redb::Key + 'static,
    V: redb::Value + 'static,
{
    rows.map_err(internal)?
        .map(|row| {
            let (k, v) = row.map_err(internal)?;
            Ok((key(k.value()), value(v.value())))
        })
        .collect()
}
