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
    for id in pending.symmetric_difference(&stored) {
        let (has, is) = match stored.contains(id) {
            true => ("has", "settled"),
            false => ("lacks", "not settled"),
        };
        wrong.push(format!("pending {has} {}, which is {is}", hex(*id)));
    }
    check_users(rows, &mut wrong)?;
    check_claims(rows, &known, &mut wrong)?;
    for (id, instance) in &known {
        let instance_id = hex(*id);
        if rows.detail(instance_id)?.is_none() {
            wrong.push(format!("{instance_id}: an instance without a detail row"));
        }
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
    let mut taken = BTreeMap::new();
    let mut claimed = BTreeMap::new();
    rows.each_claim(|id, claim| {
        claimed.insert((claim.node.0.clone(), id.0.as_u128()), id.0.as_u128());
        let Some(instance) = known.get(&id.0.as_u128()) else {
            wrong.push(format!("{id}: a claim without an instance"));
            return;
        };
        let same = claim.node == instance.node
            && claim.owner == instance.owner
            && claim.ssh_port == instance.ssh_port
            && claim.lan_ipv4 == instance.lan_ipv4
            && claim.public_ipv4 == instance.public_ipv4
            && claim.web_port == instance.web_port;
        if !same {
            wrong.push(format!(
                "{id}: its claim is of other addresses than its row"
            ));
        }
        let mut take = |what: String| {
            if let Some(other) = taken.insert(what.clone(), id) {
                wrong.push(format!("{id} and {other} both have {what}"));
            }
        };
        let node = &claim.node;
        take(format!(
            "SSH port {} of {}",
            claim.ssh_port, instance.ssh_host
        ));
        take(format!("LAN address {} of node {node}", claim.lan_ipv4));
        if let Some(port) = claim.web_port {
            take(format!("web port {port}"));
        }
        if let Some(address) = claim.public_ipv4 {
            take(format!("public address {address} of node {node}"));
        }
        // A stopped one holds no GPU.
        for gpu in claim.gpus.iter().filter(|_| claim.compute) {
            take(format!("GPU {} of node {node}", gpu.device));
        }
    })?;
    let with_claim: BTreeSet<u128> = claimed.values().copied().collect();
    for id in known.keys().filter(|id| !with_claim.contains(id)) {
        wrong.push(format!("{}: an instance without a claim", hex(*id)));
    }
    let place = |(node, id): (&str, u128)| (node.to_owned(), id);
    let stored = collect(rows.on_node_table()?.iter(), place, |()| ())?;
    let stored = stored.into_keys().map(|key| (key.clone(), key.1)).collect();
    compare("on_node", &claimed, &stored, wrong);
    Ok(())
}

/// Users by address, and the other way round.
fn check_users(rows: &Snapshot, wrong: &mut Vec<String>) -> Result<(), Error> {
    let users = collect(
        rows.users()?.iter(),
        |id| id,
        |email: &str| email.to_owned(),
    )?;
    let derived = users.into_iter().map(|(id, email)| (email, id)).collect();
    let stored = collect(
        rows.emails()?.iter(),
        |email: &str| email.to_owned(),
        |id| id,
    )?;
    if stored != derived {
        wrong.push("users and their addresses do not go together".to_owned());
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
